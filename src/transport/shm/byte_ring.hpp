#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "transport/shm/segment.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::shm {

/// A stream of bytes through shared memory, from one process to one other.
///
/// A process that finds the ring full (or empty) announces that it is about to sleep, and checks
/// the ring once more. The other process then learns at its next read (or write) that it must send
/// a wake-up event. The owner of the ring sends that event.
///
/// Threads: one at a time writes, one at a time reads.
/// Trust:   the two processes belong to one user and one job, and checked each other's token. Each
///          side bounds the counters that the other side writes, so that damage stays in the ring.
class Ring {
 public:
  /// `memory`: `bytes_for(capacity)` bytes of zeroed shared memory, which outlive this.
  Ring(std::span<std::byte> memory, std::size_t capacity);

  static constexpr std::size_t bytes_for(std::size_t capacity) {
    return sizeof(Control) + capacity;
  }

  /// Writes as many bytes as there is room for. Returns their number.
  std::size_t write(std::span<const std::byte> bytes);
  /// Reads as many bytes as there are. Returns their number.
  std::size_t read(std::span<std::byte> into);

  /// Announces that the writer sleeps until there is room; returns false if there is some already.
  bool await_room();
  /// Announces that the reader sleeps until there are bytes; returns false if there are some
  /// already.
  bool await_bytes();
  /// After a write or a read: returns true, once for each sleep, if this side must wake the other.
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

/// Two rings between two processes, one in each direction, in a segment of their own.
class Duplex {
 public:
  /// Bytes of a ring. It stays in a core's cache beside the message that it carries.
  static constexpr std::size_t capacity = std::size_t{1} << 20;

  /// One process creates the rings, the other one opens them. Errors: DataError, as `Segment`.
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

/// Polls `ready` without yielding the core. Returns true once `ready` does, false after `limit`.
/// For limits shorter than the time of a wake-up.
template <class Ready>
bool spin(const Ready& ready, Duration limit) {
  constexpr int looks_between_clocks = 16;
  const TimePoint end = steady_now() + limit;
  do {
    for (int look = 0; look < looks_between_clocks; ++look) {
      if (ready()) {
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (steady_now() < end);
  return false;
}

}  // namespace syncopate::shm
