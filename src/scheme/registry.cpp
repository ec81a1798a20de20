#include "scheme/registry.hpp"

#include <fmt/format.h>

#include <array>

#include "base/errors.hpp"
#include "scheme/local.hpp"

namespace syncopate {
namespace {

constexpr std::array table{
    SchemeInfo{"local", "one device, no communication: w -= rate * g", "sequential SGD"},
    SchemeInfo{"ssgd",
               "every step, g = sum(n_i g_i) / N by allreduce, then the optimizer on every replica",
               "Chen et al. 2016"},
};

}  // namespace

std::span<const SchemeInfo> scheme_table() {
  return table;
}

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
