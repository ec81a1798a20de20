#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/group.hpp"

/// Values travel in segments, in every algorithm of an allreduce: a rank adds one segment while the
/// next arrives, and passes it on as soon as it is added.
namespace syncopate {

/// Long enough to hide a wake-up behind its transfer, short enough to stay in the second-level
/// cache.
inline constexpr std::size_t segment_values = 128 * 1024;

/// Cuts `values` into segments, all but the last of full length. An empty span has no segments and
/// needs no message: both sides of a transfer know its length.
std::vector<std::span<float>> segments_of(std::span<float> values);

/// The sends of a rank that are under way. The caller does not change the values until `finish`.
class Sends {
 public:
  explicit Sends(Group& group) : group_(group) {}

  /// Begins to send `values` times `factor`. It scales them in place, each segment just before its
  /// send, which saves a pass over memory.
  void begin(Rank to, Tag tag, std::span<float> values, float factor = 1);

  /// Waits for segment `i`, counted over all sends. Errors: those of `Transfer::wait`.
  void wait(std::size_t i) { transfers_[i]->wait(group_.deadline()); }
  /// Waits for all of them, and forgets them.
  void finish();

 private:
  Group& group_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

/// The receives of a rank that are under way, each into its own memory. They are awaited in the
/// order in which they began.
class Receives {
 public:
  explicit Receives(Group& group) : group_(group) {}

  void begin(Rank from, Tag tag, std::span<float> into);

  /// Waits for the oldest receive that has not ended, and calls `arrived` with each of its
  /// segments.
  /// Errors: those of `Group::await`.
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

/// Called around the addition of each segment. Either may be empty.
struct AtSegment {
  std::function<void(std::size_t)> before{};      ///< segment i has arrived
  std::function<void(std::span<float>)> after{};  ///< values have been added to the segment
};

/// into[i] = into[i] · factor + the i-th value from `from`. Four receives are posted at any time:
/// three arrive while the fourth is added. Errors: those of `Group::await`.
void receive_and_add(Group& group, Rank from, std::span<float> into, float factor,
                     const AtSegment& at = {});

}  // namespace syncopate
