#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syncopate {

/// Why a data file is refused, in the three things that a user needs to read.
struct Refusal {
  std::string expected;
  std::string found;
  std::string remedy;
};

inline constexpr const char* fetch_again = "the file is damaged: fetch it again";

/// Throws the DataError that names the file and says why, on one line.
[[noreturn]] void refuse(const std::filesystem::path& path, const Refusal& why);

}  // namespace syncopate
