#include "codec/codec_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/errors.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "frames travel in little-endian order");

constexpr std::uint32_t magic = 0x5a4e5953;  // SYNZ

struct Header {
  std::uint32_t magic;
  std::uint8_t codec;
  std::uint8_t zero[3];
  std::uint64_t values;
};
static_assert(sizeof(Header) == 16 && std::is_trivially_copyable_v<Header>);

Header header_of(const Codec& codec, std::size_t values) {
  return {magic, codec.spec().number, {}, values};
}

void check(const Codec& codec, std::span<const std::byte> frame, std::size_t values) {
  const std::size_t expected = frame_bytes(codec, values);
  if (frame.size() != expected) {
    throw ProtocolError(fmt::format("expected {} bytes of {} compressed values, found {}", expected,
                                    values, frame.size()));
  }
  const Header wanted = header_of(codec, values);
  Header found{};
  std::memcpy(&found, frame.data(), sizeof(found));
  if (std::memcmp(&found, &wanted, sizeof(found)) != 0) {
    throw ProtocolError(
        fmt::format("expected a frame of {} values by codec {}, found one of {} values by codec {} "
                    "(magic {:08x})",
                    values, wanted.codec, found.values, found.codec, found.magic));
  }
}

}  // namespace

std::vector<FrameBlock> blocks_of_frame(const Codec& codec, std::size_t values) {
  std::vector<FrameBlock> blocks;
  std::size_t begin = sizeof(Header);
  for (std::size_t first = 0; first < values; first += Codec::block_values) {
    const std::size_t count = std::min(Codec::block_values, values - first);
    const std::size_t bytes = codec.block_bytes(count);
    blocks.push_back({.first = first, .values = count, .begin = begin, .bytes = bytes});
    begin += bytes;
  }
  return blocks;
}

std::size_t frame_bytes(const Codec& codec, std::size_t values) {
  const std::size_t rest = values % Codec::block_values;
  return sizeof(Header) + values / Codec::block_values * codec.block_bytes(Codec::block_values) +
         (rest > 0 ? codec.block_bytes(rest) : 0);
}

void write_frame_header(const Codec& codec, std::size_t values, std::span<std::byte> frame) {
  const Header header = header_of(codec, values);
  std::memcpy(frame.data(), &header, sizeof(header));
}

void encode_frame(Codec& codec, std::span<const float> values, std::span<std::byte> frame) {
  write_frame_header(codec, values.size(), frame);
  for (const FrameBlock& block : blocks_of_frame(codec, values.size())) {
    codec.encode(values.subspan(block.first, block.values),
                 frame.subspan(block.begin, block.bytes));
  }
}

void decode_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into) {
  check(codec, frame, into.size());
  for (const FrameBlock& block : blocks_of_frame(codec, into.size())) {
    codec.decode(frame.subspan(block.begin, block.bytes), into.subspan(block.first, block.values));
  }
}

void add_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into,
               std::span<float> scratch) {
  check(codec, frame, into.size());
  for (const FrameBlock& block : blocks_of_frame(codec, into.size())) {
    const std::span<float> decoded = scratch.first(block.values);
    codec.decode(frame.subspan(block.begin, block.bytes), decoded);
    add(into.subspan(block.first, block.values), decoded);
  }
}

}  // namespace syncopate
