#include "job/spec/names.hpp"

#include <array>

namespace syncopate {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 7> optimizers{"sgd",  "momentum", "nesterov", "rmsprop",
                                         "adam", "adamw",    "adagrad"};
constexpr std::array<Name, 2> splits{"iid", "class"};
constexpr std::array<Name, 5> compressions{"none", "bf16", "fp16", "int8", "onebit"};

}  // namespace

std::span<const Name> known_optimizers() {
  return optimizers;
}

bool uses_momentum(Name optimizer) {
  return optimizer == "momentum" || optimizer == "nesterov";
}

bool uses_betas(Name optimizer) {
  return optimizer == "adam" || optimizer == "adamw";
}

bool uses_alpha(Name optimizer) {
  return optimizer == "rmsprop";
}

bool uses_epsilon(Name optimizer) {
  return uses_betas(optimizer) || uses_alpha(optimizer) || optimizer == "adagrad";
}

std::span<const Name> known_splits() {
  return splits;
}

std::span<const Name> known_compressions() {
  return compressions;
}

}  // namespace syncopate
