#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

// A frame is an encoded vector: a header, which names the codec and the number of values, and then
// their blocks. The header has 16 bytes, little-endian:
//
//     offset  0  u32  magic, the letters SYNZ
//     offset  4  u8   the number of the codec
//     offset  5  u8   3 zeros
//     offset  8  u64  the number of values

/// The length of the frame of `values` values.
std::size_t frame_bytes(const Codec& codec, std::size_t values);

/// A block of a frame: its values, and its bytes in the frame.
struct FrameBlock {
  std::size_t first;  ///< value
  std::size_t values;
  std::size_t begin;  ///< byte
  std::size_t bytes;
};

std::vector<FrameBlock> blocks_of_frame(const Codec& codec, std::size_t values);

void write_frame_header(const Codec& codec, std::size_t values, std::span<std::byte> frame);

/// `frame` is `frame_bytes` long, at an address that is a multiple of 8.
void encode_frame(Codec& codec, std::span<const float> values, std::span<std::byte> frame);

/// `frame` is at an address that is a multiple of 8.
/// Errors: ProtocolError if the frame is of another codec or length, or damaged; values are then
///         unspecified.
void decode_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into);

/// into[i] += the decoded value i of the frame. `scratch` has room for a block.
/// Errors: as `decode_frame`.
void add_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into,
               std::span<float> scratch);

}  // namespace syncopate
