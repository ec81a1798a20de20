#include "codec/codec_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "kernels/reduce.hpp"

namespace syncopate {
namespace {

constexpr std::uint32_t magic = 0x5a4e5953;  // SYNZ

/// u32 magic, u8 kind of the codec, 3 zeros, u64 number of values.
constexpr std::size_t header_bytes = 16;

void check(const Codec& codec, std::span<const std::byte> frame, std::size_t values) {
  const std::size_t expected = frame_bytes(codec, values);
  if (frame.size() != expected) {
    throw ProtocolError(fmt::format("expected {} bytes of {} compressed values, found {}", expected,
                                    values, frame.size()));
  }
  std::array<std::byte, header_bytes> wanted{};
  write_frame_header(codec, values, wanted);
  if (!std::ranges::equal(wanted, frame.first(header_bytes))) {
    ByteReader reader(frame);
    const auto found_magic = reader.take<std::uint32_t>();
    const auto found_codec = reader.take<std::uint8_t>();
    reader.skip(3);
    throw ProtocolError(fmt::format(
        "expected a frame of {} values by codec {}, found one of {} values by codec {} "
        "(magic {:08x})",
        values, codec.spec().number, reader.take<std::uint64_t>(), found_codec, found_magic));
  }
}

}  // namespace

std::vector<FrameBlock> blocks_of_frame(const Codec& codec, std::size_t values) {
  std::vector<FrameBlock> blocks;
  std::size_t begin = header_bytes;
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
  return header_bytes + values / Codec::block_values * codec.block_bytes(Codec::block_values) +
         (rest > 0 ? codec.block_bytes(rest) : 0);
}

void write_frame_header(const Codec& codec, std::size_t values, std::span<std::byte> frame) {
  ByteWriter(frame).put(magic).put(codec.spec().number).put_zeros(3).put(std::uint64_t{values});
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
