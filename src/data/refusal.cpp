#include "data/refusal.hpp"

#include <fmt/format.h>

#include "base/errors.hpp"

namespace syncopate {

void refuse(const std::filesystem::path& path, const Refusal& why) {
  throw DataError(fmt::format("{}: expected {}, found {}; {}", path.string(), why.expected,
                              why.found, why.remedy));
}

}  // namespace syncopate
