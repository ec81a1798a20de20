#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace syncopate {

/// The variable that names the file of a job's key, for processes without an option for it.
constexpr const char* key_file_variable = "SYNCOPATE_KEY_FILE";

/// The key in a file, without the white space around it. `named_by`: the option or variable that
/// names the file, for errors. Errors: DataError if the file cannot be read; ConfigError if other
/// users can read or change it, or if what it holds is no key.
std::string read_key(const std::filesystem::path& file, std::string_view named_by);

/// Writes a new random key into a new file that only its owner can read. Errors: ConfigError if
/// there is a file already; DataError if it cannot be written.
void make_key(const std::filesystem::path& file);

}  // namespace syncopate
