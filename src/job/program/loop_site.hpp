#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "job/host/host_site.hpp"
#include "transport/shm/segment.hpp"

namespace syncopate {

/// The sizes of what a program trains.
struct LoopModel {
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  std::uint64_t samples = 0;  ///< of the training set

  friend bool operator==(const LoopModel&, const LoopModel&) = default;
};

/// The site of one worker whose gradients a program's own loop computes, or of the servers of such
/// workers. The dataset has no values: its length counts epochs.
class LoopSite final : public HostSite {
 public:
  /// Errors: ConfigError.
  LoopSite(const TrainConfig& config, const LoopModel& model);

  /// Memory of all workers, for schemes that need some.
  void use(shm::Segment memory) { memory_ = std::move(memory); }
  /// The bytes of that memory; 0 where the scheme needs none.
  std::size_t bytes_of_workers() const;

  std::span<std::byte> shared_memory() const override;
  /// Makes the replica of a server. Errors: InternalError for a worker, whose replica is elsewhere.
  std::unique_ptr<Replica> make_replica(Role role, Rank index) const override;
  /// Computes nothing: the gradients are the program's.
  wire::Join introduction(Role role, Rank index, Replica& replica) const override;

 private:
  std::string device(Role role, Rank index) const override;
  std::uint64_t parameters() const override { return model_.parameters; }

  LoopModel model_;
  std::optional<shm::Segment> memory_;
};

/// A training set of this many samples without values.
Dataset samples_without_values(std::uint64_t samples);

}  // namespace syncopate
