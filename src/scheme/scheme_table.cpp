#include "scheme/scheme_table.hpp"

#include <array>

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

}  // namespace syncopate
