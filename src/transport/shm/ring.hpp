#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/shm/segment.hpp"

namespace syncopate::shm {

/// A stream of bytes through shared memory, from one process to one other.
///
/// Who finds the ring full, or empty, may say that it is about to sleep, and look once more; the other
/// then learns from its next read, or write, that it must ring a bell. Which bell, the ring does not
/// know.
///
/// Threads: one at a time writes, one at a time reads.
/// Trust:   the two processes belong to one user and one job, and checked each other's token. What the
///          other side has written to the counters is bounded, so that damage stays in the ring.
class Ring {
 public:
  /// What `bytes_for` says of zeroed shared memory, as long as this object.
  Ring(std::span<std::byte> memory, std::size_t capacity);

  static constexpr std::size_t bytes_for(std::size_t capacity) {
    return sizeof(Control) + capacity;
  }

  /// Writes as much as there is room for, and returns how much that was.
  std::size_t write(std::span<const std::byte> bytes);
  /// Reads as much as there is, and returns how much that was.
  std::size_t read(std::span<std::byte> into);

  /// Says that the writer sleeps until there is room; false, and nothing said, where there is some.
  bool await_room();
  /// Says that the reader sleeps until there is something; false, and nothing said, where there is.
  bool await_bytes();
  /// Whether the other side must be woken, after a write or a read. Asked once for each sleep.
  bool must_wake_reader() { return take(control_.reader_sleeps); }
  bool must_wake_writer() { return take(control_.writer_sleeps); }

 private:
  struct Control {
    alignas(64) std::atomic<std::uint64_t> written;
    alignas(64) std::atomic<std::uint64_t> read;
    alignas(64) std::atomic<std::uint32_t> writer_sleeps;
    alignas(64) std::atomic<std::uint32_t> reader_sleeps;
  };

  static bool take(std::atomic<std::uint32_t>& flag);
  std::size_t filled() const;

  Control& control_;
  std::span<std::byte> data_;
};

/// Two rings between two processes, one each way, in a segment of their own.
class Duplex {
 public:
  /// Bytes of a ring: as much as stays in a core's cache beside the message that it carries.
  static constexpr std::size_t capacity = std::size_t{1} << 20;

  /// For the process that makes them, and for the other. Errors: DataError, of `Segment`.
  static Duplex create();
  static Duplex open(const SegmentAddress& address);

  SegmentAddress address() const { return segment_.address(); }
  Ring& outgoing() { return outgoing_; }
  Ring& incoming() { return incoming_; }

 private:
  Duplex(Segment segment, std::size_t outgoing, std::size_t incoming);

  Segment segment_;
  Ring outgoing_;
  Ring incoming_;
};

}  // namespace syncopate::shm
