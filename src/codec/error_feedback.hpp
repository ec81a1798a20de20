#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/codec.hpp"

namespace syncopate {

/// What compressing has saved and lost so far.
struct CompressionStats {
  std::uint64_t values = 0;         ///< that were encoded
  std::uint64_t encoded_bytes = 0;  ///< what they became
  /// Σ over frames of their values · ‖x − decoded‖ / ‖x‖, where x is what was encoded: with the errors of before.
  double error_sum = 0;

  /// Bytes before over bytes after; 0 of nothing.
  double ratio() const;
  /// The mean relative error; 0 of nothing.
  double error() const;
};

/// Encodes vectors, and remembers what each time was lost, to add it the next time (Seide et al. 2014; Karimireddy
/// et al. 2019). With e = 0 at first, C the codec and x the values at hand:
///
///     sends C(x + e);  e ← x + e − decoded(C(x + e))
///
/// So what was sent in all and e make up, at any time, the sum of all values. What is not finite is sent but not
/// remembered.
///
/// Where a sum may break in the middle and be tried again, e becomes what it would be only with `commit`; an attempt
/// begins with the e of the last commit. It takes twice the memory.
///
/// Thread: one at a time.
class ErrorFeedback {
 public:
  enum class Commits : bool { at_once, when_told };

  explicit ErrorFeedback(const Compression& compression, Commits commits = Commits::at_once);

  Codec& codec() { return *codec_; }
  const Codec& codec() const { return *codec_; }

  /// e gets room for so many values; those that it has stay.
  void reserve(std::size_t values);

  /// Encodes factor · `values` + e, where e is that of the values from `first` on. Where `decoded` is not empty it
  /// is filled with what others will decode; it may be `values`.
  void encode(std::span<const float> values, float factor, std::size_t first,
              std::span<std::byte> frame, std::span<float> decoded = {});

  /// What was encoded since the last commit has become part of a sum.
  void commit();

  /// e. Thread: as `encode`.
  std::span<const float> residual() const { return before_; }
  void load(std::span<const float> residual) { before_.assign(residual.begin(), residual.end()); }

  const CompressionStats& stats() const { return stats_; }

 private:
  std::unique_ptr<Codec> codec_;
  Commits commits_;
  std::vector<float> before_;  ///< e
  std::vector<float> after_;   ///< what a commit makes e; empty where each is one
  std::vector<float> wanted_;  ///< a block of what is to be encoded
  std::vector<float> made_;    ///< and of what it decodes to
  CompressionStats stats_;
};

/// into[i] += from[i].
void add_decoded(std::span<float> into, std::span<const float> from);

}  // namespace syncopate
