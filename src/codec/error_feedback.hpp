#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// Statistics of compression so far.
struct CompressionStats {
  std::uint64_t values = 0;         ///< encoded so far
  std::uint64_t encoded_bytes = 0;  ///< their encoded size
  /// Σ over frames of their values · ‖x − decoded‖ / ‖x‖, where x includes the errors of earlier
  /// frames.
  double error_sum = 0;

  /// Bytes before compression over bytes after; 0 without values.
  double ratio() const;
  /// The mean relative error; 0 without values.
  double error() const;
};

/// Encodes vectors, and adds what one encoding loses to the next (Seide et al. 2014; Karimireddy et
/// al. 2019). With e = 0 at first, C the codec and x the current values:
///
///     sends C(x + e);  e ← x + e − decoded(C(x + e))
///
/// So at any time the sum of all sent values and e is the sum of all values. A value that is not
/// finite is sent but does not enter e.
///
/// With deferred commits, for reductions that may break and be retried, e changes only in `commit`;
/// every attempt begins with the e of the last commit. This takes twice the memory.
///
/// Thread: one at a time.
class ErrorFeedback {
 public:
  enum class Commits : bool { immediate, deferred };

  explicit ErrorFeedback(const Compression& compression, Commits commits = Commits::immediate);

  Codec& codec() { return *codec_; }
  const Codec& codec() const { return *codec_; }

  /// Makes room in e for `values` values; its present ones stay.
  void reserve(std::size_t values);

  /// Encodes factor · `values` + e, with the e of the values from `first` on. `decoded`, if not
  /// empty, gets the values that others will decode; it may be `values`.
  void encode(std::span<const float> values, float factor, std::size_t first,
              std::span<std::byte> frame, std::span<float> decoded = {});

  /// Called when the values encoded since the last commit have become part of a result. Errors of
  /// other values stay.
  void commit();

  /// The vector e. Thread: as `encode`.
  std::span<const float> residual() const { return before_; }
  void load(std::span<const float> residual) { before_.assign(residual.begin(), residual.end()); }

  const CompressionStats& stats() const { return stats_; }

 private:
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };

  std::unique_ptr<Codec> codec_;
  Commits commits_;
  std::vector<float> before_;   ///< e
  std::vector<float> after_;    ///< e after the next commit; empty where every call commits
  std::vector<Range> encoded_;  ///< of `after_`, since the last commit
  std::vector<float> wanted_;   ///< a block of values to encode
  std::vector<float> made_;     ///< and its decoded values
  CompressionStats stats_;
};

}  // namespace syncopate
