#include "sim/sim_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

/// A waiting node sleeps this long between two checks that the writer is not lost.
constexpr Duration check_interval = std::chrono::milliseconds(10);

bool has_reached(const SharedWord& word, std::uint32_t value) {
  return static_cast<std::int32_t>(word.value.load() - value) >= 0;
}

class AwaitedWord : public Waiting {
 public:
  explicit AwaitedWord(NodeId writer) : writer_(writer) {}
  std::string describe() const override {
    return fmt::format("a word of node {} in shared memory", writer_.value);
  }

 private:
  NodeId writer_;
};

/// Keeps a completion among the sleepers of a host for its own lifetime.
class Asleep {
 public:
  Asleep(SimHost& host, Completion& completion) : host_(host), completion_(completion) {
    host_.sleepers.push_back(&completion_);
  }
  ~Asleep() { std::erase(host_.sleepers, &completion_); }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;

 private:
  SimHost& host_;
  Completion& completion_;
};

std::uint64_t address(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

std::shared_ptr<std::byte> SimMemory::allocate(std::size_t bytes) {
  auto memory =
      std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1) + alignof(SharedWord));
  std::byte* const begin =
      memory.get() + alignof(SharedWord) - address(memory.get()) % alignof(SharedWord);
  host_->allocations.emplace(address(begin), SimHost::Allocation{node_.id(), {begin, bytes}});
  return {begin, [host = std::weak_ptr(host_), owned = std::shared_ptr<std::byte[]>(
                                                   std::move(memory))](std::byte* memory_begin) {
            if (const auto there = host.lock()) {
              there->allocations.erase(address(memory_begin));
            }
          }};
}

std::span<std::byte> SimMemory::allocate_for_good(std::size_t bytes) {
  host_->for_good.push_back(allocate(bytes));
  return {host_->for_good.back().get(), bytes};
}

std::optional<std::uint64_t> SimMemory::offset_of(std::span<const std::byte> bytes) const {
  const std::uint64_t offset = address(bytes.data());
  const SimHost::Allocation* const found = allocation_at(offset, bytes.size());
  return found != nullptr && found->owner == node_.id() ? std::optional(offset) : std::nullopt;
}

std::span<std::byte> SimMemory::at(NodeId peer, std::uint64_t offset, std::size_t bytes) {
  const SimHost::Allocation* const found = allocation_at(offset, bytes);
  if (found == nullptr || found->owner != peer) {
    throw ProtocolError(
        fmt::format("node {} has no {} bytes of shared memory at {}", peer.value, bytes, offset));
  }
  return found->memory.subspan(offset - address(found->memory.data()), bytes);
}

const SimHost::Allocation* SimMemory::allocation_at(std::uint64_t offset, std::size_t bytes) const {
  const auto after = host_->allocations.upper_bound(offset);
  if (after == host_->allocations.begin()) {
    return nullptr;
  }
  const auto& [begin, allocation] = *std::prev(after);
  return offset + bytes <= begin + allocation.memory.size() ? &allocation : nullptr;
}

void SimMemory::wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) {
  while (!has_reached(word, value)) {
    check_(writer);
    if (node_.now() >= deadline) {
      throw PeerTimedOut(writer, "a word in shared memory did not come before its deadline");
    }
    await_change(writer, std::min(deadline, node_.now() + check_interval));
  }
}

void SimMemory::await_change(NodeId writer, TimePoint until) {
  Completion changed;
  const Asleep asleep(*host_, changed);
  changed.await(node_, AwaitedWord(writer), until);
}

void SimMemory::set(SharedWord& word, std::uint32_t value) {
  word.value.store(value);
  for (Completion* const sleeper : std::exchange(host_->sleepers, {})) {
    sleeper->complete();
  }
}

}  // namespace syncopate::sim
