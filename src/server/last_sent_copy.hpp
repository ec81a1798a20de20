#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// The parameters that a worker received last from a shard. Compressed parameters travel as the
/// difference to this copy, so the loss of one difference is part of the next one: error feedback
/// by construction.
///
/// The shard and the worker have one each. After the same frames both hold the same bits.
///
/// Thread: one.
class LastSentCopy {
 public:
  /// Called when the worker receives these values uncompressed.
  void reset(std::span<const float> values) { values_.assign(values.begin(), values.end()); }

  /// The shard's call: returns the frame that brings the worker nearer to `values`, and replaces
  /// `values` by the values that the worker will have. The frame is valid until the next call.
  std::span<const std::byte> encode(Codec& codec, std::span<float> values);

  /// The worker's call: returns the buffer for the next frame.
  std::span<std::byte> frame_buffer(const Codec& codec);
  /// The worker's call: applies the received frame, and writes the new values to `into`.
  /// Errors: ProtocolError if the frame is damaged.
  void decode(const Codec& codec, std::span<float> into);

 private:
  std::vector<float> values_;
  std::vector<float> difference_;
  std::vector<float> scratch_;
  std::vector<std::byte> frame_;
};

}  // namespace syncopate
