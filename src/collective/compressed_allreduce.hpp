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

/// An allreduce whose values travel compressed, in both directions, with error feedback at both
/// ends (Tang et al. 2019, DoubleSqueeze).
///
/// Algorithm: A vector is cut into P slices; rank r reduces slice r. Every rank encodes each slice
///            of its own vector and sends it to that slice's rank. This rank decodes what it
///            receives and adds it, in the order of ranks, to its own values, which have lost
///            nothing; it encodes the result and sends it to all. All ranks decode the same bytes,
///            so all have the same bits.
///
///            Each rank remembers one error a value: in the slices of others what its own part
///            lost; in its own slice what the result lost. It adds both to its values of the next
///            call.
/// Cost:      of n bytes that become n / ρ: 2 α + 2 (P − 1)/P · n/ρ β; each rank encodes n and
///            decodes about 3 n, a third of them to compute its error. Velocities take two passes
///            more.
/// Thread:    one at a time, `stats` included.
class CompressedAllreduce {
 public:
  using Commits = ErrorFeedback::Commits;

  /// With a `momentum` above 0, that of the optimizers which get these gradients, ranks reduce
  /// velocities (`MomentumCorrection`).
  /// Errors: InternalError, for a momentum where results wait for commits.
  CompressedAllreduce(const Compression& compression, Commits commits, double momentum = 0);

  /// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, which may be a
  /// part of a larger one; with a momentum, by the gradient that makes the reduced velocities of
  /// it. `values` begin at offset `first` of a vector that is reduced in parts; errors are kept by
  /// offset.
  /// Errors: PeerLost (values then unspecified), TimedOut, ViewChanged; ProtocolError, for a frame
  ///         that is damaged.
  void run(Group& group, std::span<float> values, float factor, std::size_t first);

  /// The last call ended well, on this rank or on another: see `ErrorFeedback::commit`.
  void commit() { feedback_.commit(); }

  const CompressionStats& stats() const { return feedback_.stats(); }

  /// The state of this rank: the errors, and the velocities if it has any. No call is under way.
  struct Memory {
    std::vector<float> residual;
    std::vector<float> own_velocity;
    std::vector<float> velocity_of_all;
  };
  Memory memory() const;
  /// Errors: DataError, for velocities of different lengths.
  void load(const Memory& memory);

 private:
  using Frame = std::vector<std::byte>;
  class Pass;

  void reduce(Group& group, std::span<float> values, float factor, std::size_t first);

  ErrorFeedback feedback_;
  std::optional<MomentumCorrection> momentum_;
  // By rank; kept from call to call, since first touches are slow.
  std::vector<Frame> parts_out_;
  std::vector<Frame> parts_in_;
  std::vector<Frame> results_;
  std::vector<float> scratch_;
};

}  // namespace syncopate
