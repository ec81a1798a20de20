#include "collective/compressed_allreduce.hpp"

#include <algorithm>

#include "base/errors.hpp"
#include "codec/codec_frame.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

/// One call under way on one rank.
class CompressedAllreduce::Pass {
 public:
  Pass(CompressedAllreduce& owner, Group& group, std::span<float> values, std::size_t first)
      : owner_(owner), group_(group), values_(values), first_(first), own_(group.rank().value) {}

  void run(float factor) {
    post_receives();
    send_parts(factor);
    reduce_parts(factor);
    send_results();
    receive_results();
    for (const auto& transfer : sending_) {
      transfer->wait(group_.deadline());
    }
  }

 private:
  std::size_t begin_of(std::uint32_t rank) const { return values_.size() * rank / group_.size(); }

  std::span<float> slice(std::uint32_t rank) const {
    return values_.subspan(begin_of(rank), begin_of(rank + 1) - begin_of(rank));
  }

  /// The other ranks, the next in the ring first, so that not all send to the same one at once.
  std::uint32_t other(std::uint32_t step) const { return group_.neighbour(step).value; }

  std::span<std::byte> resized(Frame& frame, std::uint32_t slice_of) const {
    frame.resize(frame_bytes(owner_.feedback_.codec(), slice(slice_of).size()));
    return frame;
  }

  void send(std::uint32_t to, Tag tag, std::span<const std::byte> frame) {
    sending_.push_back(
        group_.transport().start_send(group_.node(Rank{to}), group_.tag(tag), frame));
  }

  std::unique_ptr<Transfer> receive(std::uint32_t from, Tag tag, std::span<std::byte> frame) {
    return group_.transport().start_receive(group_.node(Rank{from}), group_.tag(tag), frame);
  }

  /// Both sides know the lengths of slices, so no empty slice is sent or received.
  void post_receives() {
    parts_.resize(group_.size());
    arriving_results_.resize(group_.size());
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
      if (rank != own_ && !slice(own_).empty()) {
        parts_[rank] = receive(rank, tags::parts, resized(owner_.parts_in_[rank], own_));
      }
      if (rank != own_ && !slice(rank).empty()) {
        arriving_results_[rank] = receive(rank, tags::sums, resized(owner_.results_[rank], rank));
      }
    }
  }

  void send_parts(float factor) {
    for (std::uint32_t step = 1; step < group_.size(); ++step) {
      const std::uint32_t rank = other(step);
      if (!slice(rank).empty()) {
        const std::span<std::byte> frame = resized(owner_.parts_out_[rank], rank);
        owner_.feedback_.encode(slice(rank), factor, first_ + begin_of(rank), frame);
        send(rank, tags::parts, frame);
      }
    }
  }

  void reduce_parts(float factor) {
    scale(slice(own_), factor);
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
      if (parts_[rank]) {
        group_.await(*parts_[rank], Rank{rank});
        add_frame(owner_.feedback_.codec(), owner_.parts_in_[rank], slice(own_), owner_.scratch_);
      }
    }
  }

  void send_results() {
    const std::span<float> mine = slice(own_);
    if (mine.empty()) {
      return;
    }
    const std::span<std::byte> frame = resized(owner_.results_[own_], own_);
    owner_.feedback_.encode(mine, 1, first_ + begin_of(own_), frame, mine);
    for (std::uint32_t step = 1; step < group_.size(); ++step) {
      send(other(step), tags::sums, frame);
    }
  }

  void receive_results() {
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
      if (arriving_results_[rank]) {
        group_.await(*arriving_results_[rank], Rank{rank});
        decode_frame(owner_.feedback_.codec(), owner_.results_[rank], slice(rank));
      }
    }
  }

  CompressedAllreduce& owner_;
  Group& group_;
  std::span<float> values_;
  std::size_t first_;
  std::uint32_t own_;
  std::vector<std::unique_ptr<Transfer>> parts_;  ///< by rank; null where none is expected
  std::vector<std::unique_ptr<Transfer>>
      arriving_results_;  ///< by rank; null where none is expected
  std::vector<std::unique_ptr<Transfer>> sending_;
};

CompressedAllreduce::CompressedAllreduce(const Compression& compression, Commits commits,
                                         double momentum)
    : feedback_(compression, commits) {
  if (momentum > 0) {
    if (commits == Commits::deferred) {
      throw InternalError("an allreduce of velocities cannot be retried");
    }
    momentum_.emplace(
        MomentumCorrection::Options{.momentum = momentum, .ahead = gradient_ahead(compression)});
  }
}

CompressedAllreduce::Memory CompressedAllreduce::memory() const {
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  Memory memory{.residual = copy(feedback_.residual()), .own_velocity = {}, .velocity_of_all = {}};
  if (momentum_) {
    memory.own_velocity = copy(momentum_->own_velocity());
    memory.velocity_of_all = copy(momentum_->velocity_of_all());
  }
  return memory;
}

void CompressedAllreduce::load(const Memory& memory) {
  if (memory.own_velocity.size() != memory.velocity_of_all.size()) {
    throw DataError("the velocities of a compressed allreduce are of different lengths");
  }
  feedback_.load(memory.residual);
  if (momentum_) {
    momentum_->load(memory.own_velocity, memory.velocity_of_all);
  }
}

void CompressedAllreduce::run(Group& group, std::span<float> values, float factor,
                              std::size_t first) {
  if (!momentum_) {
    reduce(group, values, factor, first);
    return;
  }
  momentum_->reserve(first + values.size());
  momentum_->to_velocity(values, factor, first);
  reduce(group, values, 1, first);
  momentum_->to_gradient(values, first);
}

void CompressedAllreduce::reduce(Group& group, std::span<float> values, float factor,
                                 std::size_t first) {
  feedback_.reserve(first + values.size());
  scratch_.resize(Codec::block_values);
  for (std::vector<Frame>* const frames : {&parts_out_, &parts_in_, &results_}) {
    frames->resize(std::max<std::size_t>(frames->size(), group.size()));
  }
  Pass(*this, group, values, first).run(factor);
}

}  // namespace syncopate
