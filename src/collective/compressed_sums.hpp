#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/error_feedback.hpp"
#include "codec/momentum_correction.hpp"
#include "collective/group.hpp"

namespace syncopate {

/// Sums whose values travel compressed, both ways, with error feedback at both ends (Tang et al. 2019, DoubleSqueeze).
///
/// A vector is cut into P slices, of which slice r is rank r's to sum. Every rank encodes each slice of its own vector,
/// and sends it to its rank; that one adds what it decodes, in the order of ranks, to its own values, which have lost
/// nothing, encodes the sums and sends them to all. Everybody decodes the same bytes, so all have the same bits.
///
/// Each rank remembers one error a value: in the slices of others what its own part lost; in its own slice what the
/// sums lost, which it owes to all. Both are added to what it brings next time.
///
/// Cost:   of n bytes that become n / ρ: 2 α + 2 (P − 1)/P · n/ρ β; each rank encodes n and decodes about 3 n, a third
///         of them to know what was lost. Velocities take two passes more.
/// Thread: one at a time; `stats` likewise.
class CompressedSums {
 public:
  using Commits = ErrorFeedback::Commits;

  /// With a `momentum` above 0, that of the optimizers for which these are gradients, velocities are summed
  /// (`MomentumCorrection`). Errors: InternalError, where sums wait for commits, too.
  CompressedSums(const Compression& compression, Commits commits, double momentum = 0);

  /// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, which may be a part of a larger one;
  /// of velocities, by the gradient that makes of them what was summed.
  /// Errors are remembered by place: `values` begin at `first` of a whole that is summed in parts.
  /// Errors: PeerLost (values then unspecified), TimedOut, ViewChanged; ProtocolError, for a frame that is damaged.
  void run(Group& group, std::span<float> values, float factor, std::size_t first);

  /// The last sums have ended well, wherever they did: see `ErrorFeedback::commit`.
  void commit() { feedback_.commit(); }

  const CompressionStats& stats() const { return feedback_.stats(); }

  /// What this rank remembers: the errors, and the velocities where there are any. Nothing is under way.
  struct Memory {
    std::vector<float> residual;
    std::vector<float> own_velocity;
    std::vector<float> velocity_of_all;
  };
  Memory memory() const;
  /// Errors: DataError, when velocities are not as long as each other.
  void load(const Memory& memory);

 private:
  using Frame = std::vector<std::byte>;
  class Pass;

  void add_up(Group& group, std::span<float> values, float factor, std::size_t first);

  ErrorFeedback feedback_;
  std::optional<MomentumCorrection> momentum_;
  // By rank; kept from call to call, since first touches are slow.
  std::vector<Frame> parts_out_;
  std::vector<Frame> parts_in_;
  std::vector<Frame> sums_;
  std::vector<float> scratch_;
};

}  // namespace syncopate
