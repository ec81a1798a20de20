#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "spec/networks.hpp"

/// A user's own network in a TorchScript file: the facts that are known without libtorch.
namespace syncopate {

/// True for the text of a path: it ends in ".pt" or ".pth", or contains a slash. No declared
/// network has such a name.
bool is_network_file(std::string_view text);

/// Errors: ConfigError if `path` is not a file.
void check_network_file(const std::filesystem::path& path);

/// Eight hexadecimal digits, equal on members of a job that have the same file. Errors: DataError
/// if the file cannot be read.
std::string network_checksum(const std::filesystem::path& path);

/// True if a network has BatchNorm layers with running statistics. Errors: DataError if its file
/// cannot be read.
bool has_batch_norm(const NetworkSpec& network);

}  // namespace syncopate
