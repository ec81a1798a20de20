#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

// A frame is a vector of values as it travels: a head, which says by what and how many values were encoded, and
// their blocks one after the other. The head has 16 bytes, little-endian:
//
//     offset  0  u32  magic, the letters SYNZ
//     offset  4  u8   the codec's kind
//     offset  5  u8   3 of zero
//     offset  8  u64  values

/// How long the frame of so many values is.
std::size_t frame_bytes(const Codec& codec, std::size_t values);

/// A block of a frame: which values, and where in the frame they are.
struct FrameBlock {
  std::size_t first;  ///< value
  std::size_t values;
  std::size_t begin;  ///< byte
  std::size_t bytes;
};

std::vector<FrameBlock> blocks_of_frame(const Codec& codec, std::size_t values);

/// What stands before the blocks of a frame.
void write_frame_head(const Codec& codec, std::size_t values, std::span<std::byte> frame);

/// `frame` is `frame_bytes` long, and lies at a multiple of 8.
void encode_frame(Codec& codec, std::span<const float> values, std::span<std::byte> frame);

/// `frame` lies at a multiple of 8.
/// Errors: ProtocolError, for one of another codec or length, or that is damaged; values are then unspecified.
void decode_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into);

/// into[i] += what the frame holds. `scratch` has room for a block. Errors: as `decode_frame`.
void add_frame(const Codec& codec, std::span<const std::byte> frame, std::span<float> into,
               std::span<float> scratch);

}  // namespace syncopate
