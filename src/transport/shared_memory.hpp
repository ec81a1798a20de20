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

/// A word in shared memory that one node increments, beginning at zero, and other nodes wait for.
struct alignas(64) SharedWord {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;  ///< threads to wake when the value changes
};

/// Memory that the nodes of one host share: the other nodes of the host read and write in place
/// what one node allocates here, so that values pass from node to node without a copy.
///
/// A node names its memory to others by an offset, which is valid on every node that reaches it.
/// The caller exchanges offsets between nodes, and makes them agree on which nodes reach each
/// other.
///
/// Threads: every member may be called from any thread of the node at any time.
/// Loss:    memory of a node that died keeps its content until no node holds it any more.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  /// True if this node can read and write the memory of `peer`. A node reaches itself.
  virtual bool reaches(NodeId peer) = 0;

  /// Memory of this node, aligned to pages and zero. The last owner frees it.
  /// Errors: DataError, with the size needed, if the system has no more memory.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;

  /// Memory that others may read after this node has gone: it is never freed, and exists as long as
  /// any node of the host holds this node's memory.
  virtual std::span<std::byte> allocate_for_good(std::size_t bytes) = 0;

  /// The offset of `bytes`, if they were allocated here.
  virtual std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const = 0;

  /// Memory of `peer`, which this node reaches; valid as long as this object. Errors:
  /// ProtocolError if the offset is not in that node's memory.
  virtual std::span<std::byte> at(NodeId peer, std::uint64_t offset, std::size_t bytes) = 0;

  /// Blocks until `word` has reached or passed `value`; words count up and wrap around. The caller
  /// then sees everything that `writer` wrote before it set the word.
  ///
  /// Errors: TimedOut; PeerLost if `writer`, the only node that sets the word, is lost first; the
  ///         error that the transport was cancelled with.
  virtual void wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) = 0;

  /// Counts bytes of this node that others read in place, and bytes that it wrote to others.
  virtual void count_zero_copy(std::uint64_t bytes) = 0;

  /// Sets a word that only this node writes, and wakes the threads that wait for it.
  virtual void set(SharedWord& word, std::uint32_t value) = 0;
};

/// Allocates `count` floats of value zero, in shared memory if there is any, so that other nodes of
/// the host can reduce or read them without a copy. Errors: DataError, with the size needed.
inline std::shared_ptr<float> make_values(SharedMemory* memory, std::size_t count) {
  if (memory == nullptr) {
    const auto own = std::make_shared<float[]>(count);
    return {own, own.get()};
  }
  std::shared_ptr<std::byte> bytes = memory->allocate(count * sizeof(float));
  auto* const values = reinterpret_cast<float*>(bytes.get());
  return {std::move(bytes), values};
}

/// Values of `make_values` whose count is set later. `memory` may be null, and outlives this.
class SharedValues {
 public:
  explicit SharedValues(SharedMemory* memory) : memory_(memory) {}

  /// Allocates `count` values, unless there are as many already. Errors: as `make_values`.
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
