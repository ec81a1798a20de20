#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::cli {

/// Reads a number of bytes, such as "64", "1KB", "44.7MB" or "100MiB": B, KB, MB and GB are powers
/// of 1000, KiB, MiB and GiB of 1024, in upper or lower case. At most 4 GiB. Errors: ConfigError,
/// for a text that is no whole number of bytes above 0.
std::size_t read_size(std::string_view text);

/// Reads a list of sizes, "1KB,44.7MB". Errors: ConfigError, also if a size is not a multiple of
/// `unit`.
std::vector<std::size_t> read_sizes(const std::string& list, std::size_t unit);

/// Reads the words of a list "A,B". Errors: ConfigError if a word is empty.
std::vector<std::string> words_of_list(const std::string& list);

}  // namespace syncopate::cli
