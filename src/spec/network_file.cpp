#include "spec/network_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include "base/errors.hpp"
#include "base/file.hpp"

namespace syncopate {

bool is_network_file(std::string_view text) {
  return text.ends_with(".pt") || text.ends_with(".pth") || text.find('/') != text.npos;
}

void check_network_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw ConfigError(fmt::format(
        "--network: expected a TorchScript file, found none at {}; every host needs it there",
        path.string()));
  }
}

std::string network_checksum(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return fmt::format("{:08x}", ::crc32_z(0, data, bytes.size()));
}

bool has_batch_norm(const NetworkSpec& network) {
  if (network.file.empty()) {
    return network.has_batch_norm;
  }
  // A TorchScript file is a zip archive. Its record data.pkl, which is never compressed, holds the
  // name of each buffer.
  return read_file(network.file).find("running_mean") != std::string::npos;
}

}  // namespace syncopate
