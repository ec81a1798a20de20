#include "job/spec/names.hpp"

#include <array>

namespace syncopate {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 2> splits{"iid", "class"};
constexpr std::array<Name, 5> compressions{"none", "bf16", "fp16", "int8", "onebit"};

}  // namespace

std::span<const Name> known_splits() {
  return splits;
}

std::span<const Name> known_compressions() {
  return compressions;
}

}  // namespace syncopate
