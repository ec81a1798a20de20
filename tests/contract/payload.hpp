#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/world.hpp"

/// Payloads and deadlines of the contract tests.
namespace syncopate::contract {

using Bytes = std::vector<std::byte>;

/// A deadline that only a hang reaches.
inline TimePoint soon(const World& world) {
  return world.now() + std::chrono::minutes(2);
}

/// A deadline that is meant to pass.
inline TimePoint shortly(const World& world) {
  return world.now() + std::chrono::milliseconds(20);
}

/// Returns `size` bytes that vary with the offset and with `mark`.
inline Bytes pattern(std::size_t size, std::uint64_t mark) {
  Bytes bytes(size);
  std::uint64_t value = mark * 0x9e3779b97f4a7c15 + size;
  for (std::byte& byte : bytes) {
    value = value * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(value >> 56);
  }
  return bytes;
}

inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  std::string text(bytes.size(), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text[i] = static_cast<char>(bytes[i]);
  }
  return text;
}

inline void post_text(World& world, NodeId to, Tag tag, std::string_view text) {
  world.transport().post(to, tag, bytes_of(text));
}

/// Waits for the next message and returns its text.
inline std::string receive_text(World& world, std::optional<NodeId> from, Tag tag) {
  return text_of(world.transport().receive(from, tag, soon(world)).payload);
}

}  // namespace syncopate::contract
