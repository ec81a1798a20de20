#include "tests/fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace syncopate::fuzz {

#define TARGET(name) void fuzz_##name(Input input);
#include "tests/fuzz/targets.inc"
#undef TARGET

namespace {

constexpr auto targets = std::to_array<Target>({
#define TARGET(name) {#name, fuzz_##name},
#include "tests/fuzz/targets.inc"
#undef TARGET
});

}  // namespace

std::span<const Target> all_targets() {
  return targets;
}

void require(bool kept, std::string_view promise) {
  if (!kept) {
    throw InternalError("broken promise: " + std::string(promise));
  }
}

void require_printable_line(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  require(!text.empty() && std::ranges::none_of(text, is_control),
          "an error is one line of printable characters, not \"" + std::string(text) + '"');
}

std::span<const std::byte> bytes_of(Input input) {
  return std::as_bytes(input);
}

std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

std::uint8_t take_byte(Input& input) {
  if (input.empty()) {
    return 0;
  }
  const std::uint8_t first = input.front();
  input = input.subspan(1);
  return first;
}

InputFile::InputFile(Input input) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "memfd_create gives a file");
  const ssize_t written = write(descriptor_, input.data(), input.size());
  require(written == static_cast<ssize_t>(input.size()), "the file takes the whole input");
}

InputFile::~InputFile() {
  close(descriptor_);
}

std::filesystem::path InputFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

}  // namespace syncopate::fuzz
