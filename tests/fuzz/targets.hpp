#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/errors.hpp"

/// Decoders of bytes that come from a network, a disk or a user, as targets of a fuzzer.
///
/// A target passes its input to a decoder. A decoder that crashes, leaks, reads outside its buffer
/// or hangs ends the program, which runs under AddressSanitizer and UndefinedBehaviorSanitizer. A
/// target also requires of a decoder what its header promises, and that it refuses damaged input by
/// an Error of one printable line.
namespace syncopate::fuzz {

using Input = std::span<const std::uint8_t>;

struct Target {
  std::string_view name;
  void (*run)(Input);
};

/// Every target of `targets.inc`.
std::span<const Target> all_targets();

/// Throws an InternalError unless `kept`. It ends the fuzzer, and fails a test.
void require(bool kept, std::string_view promise);
/// The same, unless `text` is one line of printable characters.
void require_printable_line(std::string_view text);

/// Runs `decode`, which may refuse its input by an Error. An InternalError is a defect.
template <typename Decode>
void accept_or_refuse(const Decode& decode) {
  try {
    decode();
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    require_printable_line(error.what());
  }
}

std::span<const std::byte> bytes_of(Input input);
std::string_view text_of(Input input);

/// Requires that a message which `decode` accepts has the same bytes when it is written, read and
/// written again. Bytes and not values are compared, because a value may be NaN.
template <typename Decode>
void require_read_back(Input input, const Decode& decode) {
  accept_or_refuse([&] {
    const auto once = encode(decode(bytes_of(input)));
    require(encode(decode(once)) == once, "a message is read back");
  });
}

/// Removes the first byte of `input` and returns it; 0 if there is none. Targets choose variants
/// by it.
std::uint8_t take_byte(Input& input);

/// A file in memory that holds an input.
class InputFile {
 public:
  explicit InputFile(Input input);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::filesystem::path path() const;

 private:
  int descriptor_;
};

}  // namespace syncopate::fuzz
