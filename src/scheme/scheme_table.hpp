#pragma once

#include <span>
#include <string_view>

namespace syncopate {

/// How the steps of a job's workers go together.
enum class Gait {
  in_step,    ///< all are at the same step, and meet after steps that all know
  in_rounds,  ///< each takes as many steps as it can; all meet in rounds, and agree what happens next
  alone,      ///< each goes on by itself
};

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
  Gait gait = Gait::in_step;
};

/// Every scheme that `make_scheme` makes.
std::span<const SchemeInfo> scheme_table();

/// Errors: ConfigError, for an unknown name.
const SchemeInfo& scheme_info(std::string_view name);

}  // namespace syncopate
