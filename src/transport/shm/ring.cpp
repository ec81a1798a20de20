#include "transport/shm/ring.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::shm {
namespace {

constexpr std::size_t ring_bytes = Ring::bytes_for(Duplex::capacity);

}  // namespace

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

Ring::Ring(std::span<std::byte> memory, std::size_t capacity)
    : control_(*std::launder(reinterpret_cast<Control*>(memory.data()))),
      data_(memory.subspan(sizeof(Control), capacity)) {}

std::size_t Ring::filled() const {
  const std::uint64_t bytes = control_.written.load(std::memory_order_acquire) -
                              control_.read.load(std::memory_order_acquire);
  return static_cast<std::size_t>(std::min<std::uint64_t>(bytes, data_.size()));
}

std::size_t Ring::write(std::span<const std::byte> bytes) {
  const std::uint64_t written = control_.written.load(std::memory_order_relaxed);
  const std::size_t count = std::min(bytes.size(), data_.size() - filled());
  if (count == 0) {
    return 0;
  }
  const std::size_t at = written % data_.size();
  const std::size_t first = std::min(count, data_.size() - at);
  std::memcpy(data_.data() + at, bytes.data(), first);
  std::memcpy(data_.data(), bytes.data() + first, count - first);
  control_.written.store(written + count, std::memory_order_seq_cst);
  return count;
}

std::size_t Ring::read(std::span<std::byte> into) {
  const std::uint64_t read = control_.read.load(std::memory_order_relaxed);
  const std::size_t count = std::min(into.size(), filled());
  if (count == 0) {
    return 0;
  }
  const std::size_t at = read % data_.size();
  const std::size_t first = std::min(count, data_.size() - at);
  std::memcpy(into.data(), data_.data() + at, first);
  std::memcpy(into.data() + first, data_.data(), count - first);
  control_.read.store(read + count, std::memory_order_seq_cst);
  return count;
}

// The sleeper sets its flag and then looks at the counters; the other side moves a counter and then
// looks at the flag. All four are sequentially consistent, so at least one of them sees the other.

bool Ring::await_room() {
  control_.writer_sleeps.store(1, std::memory_order_seq_cst);
  const bool full = control_.written.load() - control_.read.load() >= data_.size();
  return full || !take(control_.writer_sleeps);
}

bool Ring::await_bytes() {
  control_.reader_sleeps.store(1, std::memory_order_seq_cst);
  const bool empty = control_.written.load() == control_.read.load();
  return empty || !take(control_.reader_sleeps);
}

bool Ring::take(std::atomic<std::uint32_t>& flag) {
  return flag.load(std::memory_order_seq_cst) != 0 && flag.exchange(0) != 0;
}

Duplex Duplex::create() {
  Segment segment = Segment::create(2 * ring_bytes);
  return {std::move(segment), 0, ring_bytes};
}

Duplex Duplex::open(const SegmentAddress& address) {
  Segment segment = Segment::open(address);
  if (segment.bytes().size() < 2 * ring_bytes) {
    throw DataError("the rings of another process are shorter than this version's");
  }
  return {std::move(segment), ring_bytes, 0};
}

Duplex::Duplex(Segment segment, std::size_t outgoing, std::size_t incoming)
    : segment_(std::move(segment)),
      outgoing_(segment_.bytes().subspan(outgoing, ring_bytes), capacity),
      incoming_(segment_.bytes().subspan(incoming, ring_bytes), capacity) {}

}  // namespace syncopate::shm
