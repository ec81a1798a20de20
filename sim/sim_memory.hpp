#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "sim/sim_node.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate::sim {

/// The host of all nodes of a simulation that share memory: the memory that each node allocated,
/// and the nodes that wait for a word.
struct SimHost {
  struct Allocation {
    NodeId owner;
    std::span<std::byte> memory;
  };
  std::map<std::uint64_t, Allocation> allocations;  ///< by offset, which is the address
  std::vector<std::shared_ptr<std::byte>> for_good;
  std::vector<Completion*> sleepers;  ///< each rereads its word when any word is set
};

/// The shared memory of one simulated node. Access to it takes no virtual time.
class SimMemory final : public SharedMemory {
 public:
  /// Throws if `peer` is lost, or this node was cancelled.
  using Check = std::function<void(NodeId peer)>;

  SimMemory(Node& node, std::shared_ptr<SimHost> host, Check check)
      : node_(node), host_(std::move(host)), check_(std::move(check)) {}

  bool reaches(NodeId /*peer*/) override { return true; }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override;
  std::span<std::byte> allocate_for_good(std::size_t bytes) override;
  std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const override;
  std::span<std::byte> at(NodeId peer, std::uint64_t offset, std::size_t bytes) override;
  void wait(NodeId writer, SharedWord& word, std::uint32_t value, TimePoint deadline) override;
  void set(SharedWord& word, std::uint32_t value) override;
  void count_zero_copy(std::uint64_t bytes) override { zero_copy_ += bytes; }
  std::uint64_t bytes_zero_copy() const { return zero_copy_; }

 private:
  const SimHost::Allocation* allocation_at(std::uint64_t offset, std::size_t bytes) const;
  void await_change(NodeId writer, TimePoint until);

  Node& node_;
  std::shared_ptr<SimHost> host_;
  Check check_;
  std::uint64_t zero_copy_ = 0;
};

}  // namespace syncopate::sim
