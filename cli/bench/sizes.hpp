#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::cli {

/// The bytes that "64", "1KB", "44.7MB" or "100MiB" means: B, KB, MB and GB are powers of 1000,
/// KiB, MiB and GiB of 1024, in letters of either case. At most 4 GiB.
/// Errors: ConfigError, for what is no whole number of bytes above 0.
std::size_t read_size(std::string_view text);

/// Sizes between commas, "1KB,44.7MB". Errors: ConfigError, also for one that is no multiple of
/// `unit`.
std::vector<std::size_t> read_sizes(const std::string& list, std::size_t unit);

/// Words between commas. Errors: ConfigError, for an empty one.
std::vector<std::string> words_of_list(const std::string& list);

}  // namespace syncopate::cli
