#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::test {

/// A temporary folder that is removed at the end of the scope.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = testing::TempDir() + "/syncopate-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Returns the bytes of an IDX file: magic number, dimensions, values.
inline std::string idx_bytes(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions,
                             const std::vector<std::uint8_t>& values) {
  std::string bytes;
  auto words = dimensions;
  words.insert(words.begin(), magic);
  for (const std::uint32_t word : words) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<char>(word >> shift & 0xffU));
    }
  }
  bytes.append(values.begin(), values.end());
  return bytes;
}

inline constexpr std::uint32_t labels_magic = 0x801;
inline constexpr std::uint32_t images_magic = 0x803;

inline void write_plain(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(file);
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Returns the message of the `Failure` that `action` throws. Expects that it is one line.
template <class Failure, class Action>
std::string message_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Failure& failure) {
    const std::string message = failure.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  ADD_FAILURE() << "expected an exception";
  return "";
}

}  // namespace syncopate::test
