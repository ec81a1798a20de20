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
///            receives and adds it, in the order of ranks, to its own values, which are not
///            encoded; it encodes the result and sends it to all. All ranks decode the same bytes,
///            so all have the same bits.
///
///            Each rank keeps one error per value: in the slices of other ranks the loss of its own
///            part, in its own slice the loss of the result. It adds these errors to its values in
///            the next call.
/// Cost:      of n bytes that become n / ρ: 2 α + 2 (P − 1)/P · n/ρ β; each rank encodes n and
///            decodes about 3 n, a third of them to compute its error. Velocities take two passes
///            more.
/// Thread:    one at a time, `stats` included.
class CompressedAllreduce {
 public:
  using Commits = ErrorFeedback::Commits;

  /// With a `momentum` above 0, that of the optimizers which get these gradients, ranks reduce
  /// velocities (`MomentumCorrection`).
  /// Errors: InternalError if a momentum is combined with deferred commits.
  CompressedAllreduce(const Compression& compression, Commits commits, double momentum = 0);

  /// Replaces `values` by the sum of `factor` · `values` over all ranks of `group`, which may be a
  /// part of a larger one; with a momentum, by the gradient that makes the reduced velocities of
  /// it. `values` begin at offset `first` of a vector that is reduced in parts; errors are kept by
  /// offset.
  /// Errors: PeerLost (values then unspecified), TimedOut, ViewChanged; ProtocolError if a frame is
  ///         damaged.
  void run(Group& group, std::span<float> values, float factor, std::size_t first);

  /// Called when the last call of `run` is complete, on this rank or on another: see
  /// `ErrorFeedback::commit`.
  void commit() { feedback_.commit(); }

  const CompressionStats& stats() const { return feedback_.stats(); }

  /// The state of this rank: the errors, and the velocities if it has any. Read and loaded while no
  /// call of `run` is under way.
  struct Memory {
    std::vector<float> residual;
    std::vector<float> own_velocity;
    std::vector<float> velocity_of_all;
  };
  Memory memory() const;
  /// Errors: DataError if the velocities have different lengths.
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
