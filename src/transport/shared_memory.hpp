#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// A word in shared memory that one node counts up and others wait for. Zero is where it begins.
struct alignas(64) SharedWord {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;  ///< who must be woken when the value changes
};

/// Memory that the nodes of one host lend each other: what one allocates here, the others of its host
/// read and write where it is, so that nothing has to be copied to be handed over.
///
/// A node tells others where its memory is by a *place*, a number that is valid on every node that
/// reaches it. To exchange places, and to agree who reaches whom, is the caller's business.
///
/// Threads: every member may be called from any thread of the node at any time.
/// Loss:    memory of a node that died stays as it was until nobody holds it any more.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  /// Whether memory of `peer` can be read and written from here. A node reaches itself.
  virtual bool reaches(NodeId peer) = 0;

  /// Memory of this node, aligned to pages and zero. It is given back when the last owner lets go.
  /// Errors: DataError, with the size needed, where the system has no more.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;

  /// The same for what others may look at when this node has gone: never given back, and there as long
  /// as any node of the host holds this one's memory.
  virtual std::span<std::byte> allocate_for_good(std::size_t bytes) = 0;

  /// Where `bytes` are, if they were allocated here.
  virtual std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const = 0;

  /// Memory of `peer`, which this node reaches; valid as long as this object. Errors: ProtocolError,
  /// for a place that is not in that node's memory.
  virtual std::span<std::byte> at(NodeId peer, std::uint64_t place, std::size_t bytes) = 0;

  /// Blocks until `word` has come to `value`, or gone past it: words count up, and around. What its
  /// writer had written before is seen.
  ///
  /// Errors: TimedOut; PeerLost, when `writer`, the only one who counts it up, is lost first; or what
  ///         the transport was cancelled with.
  virtual void wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) = 0;

  /// Counts bytes of this node that others read where they are, and bytes that it wrote to others.
  virtual void count_zero_copy(std::uint64_t bytes) = 0;

  /// Sets a word of which this node is the writer, and wakes those who wait for it.
  virtual void set(SharedWord& word, std::uint32_t value) = 0;
};

/// `count` floats, zero: in memory that the other nodes of the host reach, where there is some, so that
/// to sum them or to hand them over copies nothing. Errors: DataError, with the size needed.
inline std::shared_ptr<float> make_values(SharedMemory* memory, std::size_t count) {
  if (memory == nullptr) {
    const auto own = std::make_shared<float[]>(count);
    return {own, own.get()};
  }
  std::shared_ptr<std::byte> bytes = memory->allocate(count * sizeof(float));
  auto* const values = reinterpret_cast<float*>(bytes.get());
  return {std::move(bytes), values};
}

/// Values of `make_values` whose number is told later. `memory` may be null, and outlives this.
class SharedValues {
 public:
  explicit SharedValues(SharedMemory* memory) : memory_(memory) {}

  /// Room for `count` values; where there was for as many, they stay. Errors: as `make_values`.
  void resize(std::size_t count) {
    if (count != all_.size()) {
      values_ = make_values(memory_, count);
      all_ = {values_.get(), count};
    }
  }

  std::span<float> all() const { return all_; }

 private:
  SharedMemory* memory_;
  std::shared_ptr<float> values_;
  std::span<float> all_;
};

}  // namespace syncopate
