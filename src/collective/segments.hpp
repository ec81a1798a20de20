#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/group.hpp"

/// How values travel in an allreduce, the same in every algorithm: in segments, so that one is added while
/// the next arrives, and passed on as soon as it is.
namespace syncopate {

/// Long enough to hide a wake-up behind its transfer, short enough to stay in the second-level cache.
inline constexpr std::size_t segment_values = 128 * 1024;

/// Cuts `values` into segments, all but the last of full length. There are none of no values, and so no
/// message: both sides of a transfer know how long it is.
std::vector<std::span<float>> segments_of(std::span<float> values);

/// What a rank has under way to others. The values stay as they are until `finish`.
class Sends {
 public:
  explicit Sends(Group& group) : group_(group) {}

  /// Begins to send `values` times `factor`. They are scaled in place, each segment just before it is
  /// sent, which saves a pass over memory.
  void begin(Rank to, Tag tag, std::span<float> values, float factor = 1);

  /// Waits for segment `i` of all that were begun. Errors: those of `Transfer::wait`.
  void wait(std::size_t i) { transfers_[i]->wait(group_.deadline()); }
  /// Waits for all of them, and forgets them.
  void finish();

 private:
  Group& group_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

/// Values that a rank gets from others, each into its place; awaited in the order in which they were
/// begun.
class Receives {
 public:
  explicit Receives(Group& group) : group_(group) {}

  void begin(Rank from, Tag tag, std::span<float> into);

  /// Waits for all that the first `begin` asked for of those that have not ended, and calls `arrived`
  /// with each segment. Errors: those of `Group::await`.
  void finish_next(const std::function<void(std::span<float>)>& arrived = {});

 private:
  struct Arrival {
    Rank from;
    std::span<float> segment;
    std::unique_ptr<Transfer> transfer;
  };

  Group& group_;
  std::deque<std::vector<Arrival>> arrivals_;
};

/// What happens around the addition of a segment. Either may be empty.
struct AtSegment {
  std::function<void(std::size_t)> before{};      ///< segment i has come
  std::function<void(std::span<float>)> after{};  ///< it has been added to this
};

/// into[i] = into[i] · factor + what `from` sends. Four receives are posted at any time: three fill while
/// the fourth is added. Errors: those of `Group::await`.
void receive_and_add(Group& group, Rank from, std::span<float> into, float factor,
                     const AtSegment& at = {});

}  // namespace syncopate
