#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// What a worker has of a shard's model, as both of them know it, where parameters travel compressed: as the difference
/// to what it has. What a difference loses is part of the next one, which is error feedback by construction.
///
/// Each side has one, which both change alike: after the same frames they hold the same bits.
///
/// Thread: one.
class Shadow {
 public:
  /// The worker has these, all of them.
  void reset(std::span<const float> values) { values_.assign(values.begin(), values.end()); }

  /// The frame that brings the worker nearer to `values`; these become what it will have. The frame is valid until the
  /// next call.
  std::span<const std::byte> bring(Codec& codec, std::span<float> values);

  /// Where the worker receives the next frame.
  std::span<std::byte> expect(const Codec& codec);
  /// Takes in what came there: `into` becomes what the worker has. Errors: ProtocolError, for a damaged frame.
  void take(const Codec& codec, std::span<float> into);

 private:
  std::vector<float> values_;
  std::vector<float> difference_;
  std::vector<float> scratch_;
  std::vector<std::byte> frame_;
};

}  // namespace syncopate
