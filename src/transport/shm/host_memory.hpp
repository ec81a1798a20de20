#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "transport/shared_memory.hpp"
#include "transport/shm/segment.hpp"
#include "wire/handshake.pb.h"

namespace syncopate::shm {

/// Allocates parts of a range of memory: first fit, in whole pages. It holds no memory itself.
///
/// Invariant: adjacent free parts are merged.
class Arena {
 public:
  static constexpr std::size_t page = 4096;

  explicit Arena(std::size_t bytes) { free_.emplace(0, bytes / page * page); }

  /// The offset of a free part for `bytes`, at least one page; empty if there is none.
  std::optional<std::size_t> take(std::size_t bytes);
  void give_back(std::size_t begin, std::size_t bytes);

  static std::size_t whole_pages(std::size_t bytes) {
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
  }

 private:
  std::map<std::size_t, std::size_t> free_;  ///< bytes, by offset
};

/// The shared memory of real processes. Each node allocates from a segment of its own, and maps the
/// segments of the others when it first needs them.
///
/// Waiting: a thread spins for a short while if every node can have a core, then yields the core,
///          then sleeps until it is woken. So a short wait costs little, a long one takes no core
///          from others, and a host may run more nodes than it has cores.
class HostMemory final : public SharedMemory {
 public:
  /// Throws if a wait for a node cannot end: the node is lost, or this node was cancelled.
  using Check = std::function<void(NodeId)>;

  /// Reserves addresses for as much memory as the host has. Errors: DataError.
  explicit HostMemory(Check check);

  SegmentAddress address() const { return own_->segment.address(); }
  /// Records the address of a node's memory; also of this node's own.
  void introduce(NodeId node, const SegmentAddress& address);

  bool reaches(NodeId peer) override;
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  std::span<std::byte> allocate_for_good(std::size_t bytes) override;
  std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const override;
  std::span<std::byte> at(NodeId peer, std::uint64_t offset, std::size_t bytes) override;
  void wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) override;
  void set(SharedWord& word, std::uint32_t value) override;
  void count_zero_copy(std::uint64_t bytes) override { zero_copy_ += bytes; }
  std::uint64_t bytes_zero_copy() const { return zero_copy_; }

 private:
  /// This node's own memory. Allocations share its ownership, so they may outlive `HostMemory`.
  struct Own {
    explicit Own(std::size_t bytes) : segment(Segment::create(bytes)), arena(bytes) {}

    Segment segment;
    Mutex mutex;
    Arena arena GUARDED_BY(mutex);
  };
  struct Peer {
    SegmentAddress address;
    bool own = false;  ///< this node's own memory; compared once, since that takes a system call
    bool tried = false;
    std::optional<Segment> segment{};  ///< mapped, if the system allowed it
  };

  std::span<std::byte> memory_of(NodeId node);
  std::size_t take(std::size_t bytes);
  void check_for(NodeId writer, const SharedWord& word, std::uint32_t value) const;

  const Check check_;
  std::atomic<std::uint64_t> zero_copy_ = 0;
  const std::shared_ptr<Own> own_;

  Mutex mutex_;
  std::map<NodeId, Peer> peers_ GUARDED_BY(mutex_);
  std::atomic<bool> crowded_ = false;  ///< there are more nodes than cores
};

/// Converts a segment's address to and from the message of a handshake.
wire::SharedSegment announce(const SegmentAddress& address);

SegmentAddress read(const wire::SharedSegment& segment);

}  // namespace syncopate::shm
