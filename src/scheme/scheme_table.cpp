#include "scheme/scheme_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using Through = SchemeInfo::Through;

constexpr std::array table{
    SchemeInfo{"local", "one device, no communication: w -= rate * g", "sequential SGD",
               Through::nothing},
    SchemeInfo{"ssgd",
               "every step, g = sum(n_i g_i) / N by allreduce, then the optimizer on every replica",
               "Chen et al. 2016"},
    SchemeInfo{"local-sgd", "local steps; every so many, w = sum(n_i w_i) / N", "Stich 2018"},
    SchemeInfo{"diloco", "local-sgd, with an outer optimizer on w - sum(n_i w_i) / N",
               "Douillard et al. 2023"},
    SchemeInfo{"esync",
               "local steps until the pacer says ready, then w += rate * sum(n_i (w_i - w)) / N",
               "Li et al. 2019", Through::each_other, Gait::in_rounds},
    SchemeInfo{"nbssgd",
               "the first to finish a batch signals; all give the mini-batches done, ssgd's step",
               "He & Dube 2022", Through::each_other, Gait::in_rounds},
    SchemeInfo{"asgd", "push g_i, which the server applies at once, and pull w", "Dean et al. 2012",
               Through::server, Gait::alone},
    SchemeInfo{"dc-asgd", "asgd with g + lambda g*g*(w - w_i), w_i: what the worker computed at",
               "Zheng et al. 2017", Through::server, Gait::alone},
    SchemeInfo{"ssp", "asgd, but no worker is more than the slack ahead of the slowest",
               "Ho et al. 2013", Through::server, Gait::alone},
    SchemeInfo{"backup",
               "a step is the mean of its first gradients; those of the last b are left out",
               "Chen et al. 2016", Through::server, Gait::alone},
    SchemeInfo{"downpour", "local steps; the sum of g is pushed every n steps, w fetched every m",
               "Dean et al. 2012", Through::server, Gait::alone},
    SchemeInfo{"easgd", "local steps; every so many, w_i and the server's w are drawn together",
               "Zhang et al. 2015", Through::server, Gait::alone},
    SchemeInfo{"hogwild", "every worker adds its steps to one w in shared memory, without locks",
               "Recht et al. 2011", Through::shared_memory, Gait::alone},
};

}  // namespace

std::span<const SchemeInfo> scheme_table() {
  return table;
}

const SchemeInfo& scheme_info(std::string_view name) {
  const auto* const found = std::find_if(table.begin(), table.end(),
                                         [&](const SchemeInfo& info) { return info.name == name; });
  if (found == table.end()) {
    throw ConfigError(
        fmt::format("there is no scheme \"{}\"; `syncopate schemes` lists them", name));
  }
  return *found;
}

}  // namespace syncopate
