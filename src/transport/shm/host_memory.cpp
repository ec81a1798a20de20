#include "transport/shm/host_memory.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "base/errors.hpp"
#include "base/log.hpp"
#include "transport/shm/byte_ring.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::shm {
namespace {

/// A waiting thread spins this long before it yields the core: a fraction of a wake-up's time.
constexpr Duration spinning = std::chrono::microseconds(5);
/// A waiting thread yields this often before it sleeps: some 100 µs on an idle machine.
constexpr int yields = 200;
/// A waiting thread sleeps this long before it checks that the wait can still end.
constexpr Duration glance = std::chrono::milliseconds(20);

std::size_t memory_of_the_host() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

bool has_come_to(const SharedWord& word, std::uint32_t value) {
  return static_cast<std::int32_t>(word.value.load(std::memory_order_acquire) - value) >= 0;
}

/// Waits without sleeping; returns true if the word has reached the value. Does not spin unless
/// `alone`: with more nodes than cores, the writer may need this core.
bool come_while_awake(const SharedWord& word, std::uint32_t value, bool alone) {
  if (alone ? spin([&] { return has_come_to(word, value); }, spinning) : has_come_to(word, value)) {
    return true;
  }
  for (int yield = 0; yield < yields; ++yield) {
    ::sched_yield();
    if (has_come_to(word, value)) {
      return true;
    }
  }
  return false;
}

/// Several processes map the words at different addresses, so the kernel must identify them by
/// page: the operation must not be a private one.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

void sleep_until_changed(SharedWord& word, std::uint32_t seen, Duration limit) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
  const timespec timeout{.tv_sec = nanoseconds / 1'000'000'000,
                         .tv_nsec = nanoseconds % 1'000'000'000};
  futex(word.value, FUTEX_WAIT, seen, &timeout);
}

}  // namespace

std::optional<std::size_t> Arena::take(std::size_t bytes) {
  const std::size_t needed = whole_pages(bytes);
  const auto part = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& free) { return free.second >= needed; });
  if (part == free_.end()) {
    return std::nullopt;
  }
  const auto [begin, room] = *part;
  free_.erase(part);
  if (room > needed) {
    free_.emplace(begin + needed, room - needed);
  }
  return begin;
}

void Arena::give_back(std::size_t begin, std::size_t bytes) {
  auto part = free_.emplace(begin, whole_pages(bytes)).first;
  if (const auto next = std::next(part);
      next != free_.end() && part->first + part->second == next->first) {
    part->second += next->second;
    free_.erase(next);
  }
  if (part != free_.begin()) {
    const auto previous = std::prev(part);
    if (previous->first + previous->second == part->first) {
      previous->second += part->second;
      free_.erase(part);
    }
  }
}

HostMemory::HostMemory(Check check)
    : check_(std::move(check)), own_(std::make_shared<Own>(memory_of_the_host())) {}

void HostMemory::introduce(NodeId node, const SegmentAddress& address) {
  const MutexLock lock(mutex_);
  peers_.try_emplace(node, Peer{.address = address, .own = address == this->address()});
  std::vector<pid_t> processes;
  for (const auto& [_, peer] : peers_) {
    processes.push_back(static_cast<pid_t>(peer.address.pid));
  }
  crowded_ = peers_.size() > available_cores(processes);
}

bool HostMemory::reaches(NodeId peer) {
  return !memory_of(peer).empty();
}

std::span<std::byte> HostMemory::memory_of(NodeId node) {
  const MutexLock lock(mutex_);
  const auto found = peers_.find(node);
  if (found == peers_.end()) {
    return {};
  }
  Peer& peer = found->second;
  if (peer.own) {
    return own_->segment.bytes();
  }
  if (!std::exchange(peer.tried, true)) {
    try {
      peer.segment = Segment::open(peer.address);
    } catch (const DataError& error) {
      log::debug("node {}: {}", node.value, error.what());
    }
  }
  return peer.segment ? peer.segment->bytes() : std::span<std::byte>();
}

std::shared_ptr<std::byte> HostMemory::allocate(std::size_t bytes) {
  const std::size_t begin = take(bytes);
  return {own_->segment.bytes().data() + begin, [own = own_, begin, bytes](std::byte*) {
            own->segment.release(begin, Arena::whole_pages(bytes));
            const MutexLock giving(own->mutex);
            own->arena.give_back(begin, bytes);
          }};
}

std::span<std::byte> HostMemory::allocate_for_good(std::size_t bytes) {
  return own_->segment.bytes().subspan(take(bytes), bytes);
}

/// The offset of a new part of `bytes`, backed by memory.
std::size_t HostMemory::take(std::size_t bytes) {
  const MutexLock lock(own_->mutex);
  const auto begin = own_->arena.take(bytes);
  if (!begin) {
    throw DataError(fmt::format("no {} bytes of shared memory are left", bytes));
  }
  try {
    own_->segment.reserve(*begin, Arena::whole_pages(bytes));
  } catch (const DataError&) {
    own_->arena.give_back(*begin, bytes);
    throw;
  }
  return *begin;
}

std::optional<std::uint64_t> HostMemory::offset_of(std::span<const std::byte> bytes) const {
  const std::span<const std::byte> all = own_->segment.bytes();
  const bool inside = bytes.data() >= all.data() && bytes.data() < all.data() + all.size();
  return inside ? std::optional(static_cast<std::uint64_t>(bytes.data() - all.data()))
                : std::nullopt;
}

std::span<std::byte> HostMemory::at(NodeId peer, std::uint64_t offset, std::size_t bytes) {
  const std::span<std::byte> all = memory_of(peer);
  if (offset > all.size() || bytes > all.size() - offset) {
    throw ProtocolError(
        fmt::format("node {} has no {} bytes of shared memory at {}", peer.value, bytes, offset));
  }
  return all.subspan(offset, bytes);
}

void HostMemory::wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) {
  if (come_while_awake(word, value, !crowded_)) {
    return;
  }
  while (true) {
    check_for(writer, word, value);
    word.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = word.value.load(std::memory_order_seq_cst);
    const Duration left = deadline - steady_now();
    if (!has_come_to(word, value) && left > Duration::zero()) {
      sleep_until_changed(word, seen, std::min(left, glance));
    }
    word.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (has_come_to(word, value)) {
      return;
    }
    if (left <= Duration::zero()) {
      throw PeerTimedOut(writer, "a word in shared memory did not come before its deadline");
    }
  }
}

/// Throws if the wait cannot end, unless the lost writer had already set the word.
void HostMemory::check_for(NodeId writer, const SharedWord& word, std::uint32_t value) const {
  try {
    check_(writer);
  } catch (const PeerLost&) {
    if (!has_come_to(word, value)) {
      throw;
    }
  }
}

void HostMemory::set(SharedWord& word, std::uint32_t value) {
  word.value.store(value, std::memory_order_seq_cst);
  if (word.sleepers.load(std::memory_order_seq_cst) != 0) {
    futex(word.value, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

wire::SharedSegment announce(const SegmentAddress& address) {
  wire::SharedSegment out;
  out.set_machine(address.machine);
  out.set_pid(address.pid);
  out.set_file(address.descriptor);
  out.set_secret_begin(address.secret[0]);
  out.set_secret_end(address.secret[1]);
  return out;
}

SegmentAddress read(const wire::SharedSegment& segment) {
  return {.machine = segment.machine(),
          .pid = segment.pid(),
          .descriptor = segment.file(),
          .secret = {segment.secret_begin(), segment.secret_end()}};
}

}  // namespace syncopate::shm
