#include "base/printable.hpp"

#include <cstddef>
#include <cstdint>

namespace syncopate {
namespace {

/// A character, and the bytes that it takes; 0 bytes: the text does not begin with a character.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

std::size_t length_after(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first < 0xe0) {
    return 2;
  }
  if (first >= 0xe0 && first < 0xf0) {
    return 3;
  }
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/// False for an overlong sequence, for half of a UTF-16 pair, and beyond the last character.
bool is_character(const Character& character) {
  const bool overlong = (character.bytes == 3 && character.code < 0x800) ||
                        (character.bytes == 4 && character.code < 0x10000);
  const bool surrogate = character.code >= 0xd800 && character.code < 0xe000;
  return !overlong && !surrogate && character.code < 0x110000;
}

/// `text` is not empty.
Character first_of(std::string_view text) {
  constexpr unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  const auto first = static_cast<unsigned char>(text.front());
  Character character{.bytes = length_after(first)};
  if (character.bytes == 0 || character.bytes > text.size()) {
    return {};
  }
  character.code = first & masks[character.bytes];
  for (const char byte : text.substr(1, character.bytes - 1)) {
    const auto next = static_cast<unsigned char>(byte);
    if ((next & 0xc0U) != 0x80) {
      return {};
    }
    character.code = character.code << 6U | (next & 0x3fU);
  }
  return is_character(character) ? character : Character{};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/// A character that turns the direction of those after it, and so hides text.
bool turns_direction(std::uint32_t code) {
  return code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_white(std::uint32_t code) {
  return code == '\n' || code == '\r' || code == '\t';
}

std::string cleaned(std::string_view text, bool keep_lines) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    const bool kept = next.bytes > 0 && !is_control(next.code) && !turns_direction(next.code);
    if (kept || (keep_lines && (next.code == '\n' || next.code == '\t'))) {
      clean += text.substr(0, next.bytes);
    } else {
      clean += next.bytes > 0 && is_white(next.code) ? ' ' : '?';
    }
    text.remove_prefix(next.bytes > 0 ? next.bytes : 1);
  }
  return clean;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.bytes == 0) {
      return false;
    }
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  return cleaned(text, /*keep_lines=*/false);
}

std::string printable_lines(std::string_view text) {
  return cleaned(text, /*keep_lines=*/true);
}

std::string excerpt(std::string_view text, std::size_t letters) {
  // Each character takes at most four bytes: a long text is not cleaned as a whole.
  const std::string clean = printable(text.substr(0, 4 * (letters + 1)));
  std::size_t end = 0;
  for (std::size_t count = 0; end < clean.size(); ++count) {
    if (count == letters) {
      return clean.substr(0, end) + "…";
    }
    end += first_of(std::string_view(clean).substr(end)).bytes;
  }
  return clean;
}

}  // namespace syncopate
