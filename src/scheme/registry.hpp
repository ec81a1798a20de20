#pragma once

#include <memory>
#include <string>

#include "collective/group.hpp"
#include "scheme/scheme.hpp"
#include "scheme/ssgd.hpp"

namespace syncopate {

struct SchemeOptions {
  std::string name;
  Weights weights = Weights::samples;
  Round done{};  ///< rounds that came before, in a run that is resumed
};

/// Errors: ConfigError, for an unknown name, or `local` with more than one worker.
std::unique_ptr<Scheme> make_scheme(Group& workers, const SchemeOptions& options);

}  // namespace syncopate
