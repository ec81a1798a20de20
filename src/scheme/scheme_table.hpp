#pragma once

#include <span>
#include <string_view>

namespace syncopate {

/// A scheme as help texts show it, and what it asks of a job.
struct SchemeInfo {
  /// What the workers meet in.
  enum class Through {
    nothing,        ///< there is one worker
    each_other,     ///< collectives; or a server that does no more than add (`--aggregate server`)
    server,         ///< a parameter server
    shared_memory,  ///< of one host
  };

  std::string_view name;
  std::string_view rule;
  std::string_view source;
  Through through = Through::each_other;
  /// All workers are at the same step, meet in every round, and agree what happens next. Otherwise
  /// each goes on by itself, and a job is measured by the samples of all.
  bool lockstep = true;
};

/// Every scheme that `make_scheme` makes.
std::span<const SchemeInfo> scheme_table();

/// Errors: ConfigError, for an unknown name.
const SchemeInfo& scheme_info(std::string_view name);

}  // namespace syncopate
