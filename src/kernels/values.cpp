#include "kernels/values.hpp"

#include <fmt/format.h>

#include <array>

namespace syncopate {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};

/// In the order of `ValueType`.
constexpr std::array<TypeFacts, 8> facts{{{"float32", 4},
                                          {"float64", 8},
                                          {"int32", 4},
                                          {"int64", 8},
                                          {"bfloat16", 2},
                                          {"float16", 2},
                                          {"int8", 1},
                                          {"uint8", 1}}};

const TypeFacts& facts_of(ValueType type) {
  return facts.at(static_cast<std::size_t>(type));
}

}  // namespace

std::string_view name_of(ValueType type) {
  return facts_of(type).name;
}

std::size_t bytes_of(ValueType type) {
  return facts_of(type).bytes;
}

Values Values::subspan(std::size_t begin, std::size_t count) const {
  return {data_ + begin * bytes_of(type_), type_, count, device_};
}

void Values::expect_host(ValueType type) const {
  if (type != type_ || device_.kind != DeviceId::Kind::host) {
    throw InternalError(fmt::format(
        "{} in the memory of {} were used as {} in the host's memory", name_of(type_),
        device_.kind == DeviceId::Kind::host ? "the host" : "an accelerator", name_of(type)));
  }
}

}  // namespace syncopate
