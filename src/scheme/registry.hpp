#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "collective/group.hpp"
#include "scheme/scheme.hpp"
#include "scheme/ssgd.hpp"

namespace syncopate {

/// A scheme as help texts show it.
struct SchemeInfo {
  std::string_view name;
  std::string_view rule;
  std::string_view source;
};

/// Every scheme that `make_scheme` makes.
std::span<const SchemeInfo> scheme_table();

struct SchemeOptions {
  std::string name;
  Weights weights = Weights::samples;
  Round done{};  ///< rounds that came before, in a run that is resumed
};

/// Errors: ConfigError, for an unknown name, or `local` with more than one worker.
std::unique_ptr<Scheme> make_scheme(Group& workers, const SchemeOptions& options);

}  // namespace syncopate
