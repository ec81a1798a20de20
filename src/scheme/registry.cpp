#include "scheme/registry.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"
#include "scheme/local.hpp"

namespace syncopate {

std::unique_ptr<Scheme> make_scheme(Group& workers, const SchemeOptions& options) {
  if (options.name == "ssgd") {
    return std::make_unique<Ssgd>(workers,
                                  Ssgd::Options{.weights = options.weights, .done = options.done});
  }
  if (options.name != "local") {
    throw ConfigError(
        fmt::format("there is no scheme \"{}\"; `syncopate schemes` lists them", options.name));
  }
  if (workers.size() > 1) {
    throw ConfigError(fmt::format(
        "the scheme local trains on one device, but this job has {} workers; use --workers 1 or "
        "another scheme",
        workers.size()));
  }
  return std::make_unique<Local>(workers.world(), options.done);
}

}  // namespace syncopate
