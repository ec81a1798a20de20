#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "job/members/members.hpp"
#include "wire/control.pb.h"

namespace syncopate {

/// Memory, initially zero, that this process shares with all processes that it forks later. It has
/// no name, so no other process can find it; it ends with the last of these processes.
class InheritedMemory {
 public:
  /// Holds no memory.
  InheritedMemory() = default;
  /// Errors: DataError if the system has no room for the memory.
  explicit InheritedMemory(std::size_t bytes);
  ~InheritedMemory();
  InheritedMemory(InheritedMemory&& other) noexcept;
  InheritedMemory& operator=(InheritedMemory&& other) noexcept;
  InheritedMemory(const InheritedMemory&) = delete;
  InheritedMemory& operator=(const InheritedMemory&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// The site of members on a real host. Processes that are forked from one process share one copy of
/// the dataset.
class HostSite : public MemberSite {
 public:
  /// `resume_from`: the checkpoint from which the job continues; empty for a new job.
  /// Errors: ConfigError.
  HostSite(const TrainConfig& config, Dataset dataset,
           std::optional<std::filesystem::path> resume_from);

  const JobPlan& plan() const override { return plan_; }
  const TrainConfig& config() const { return plan_.config(); }
  const RunFolder& folder() const override { return folder_; }
  const Dataset& dataset() const override { return dataset_; }
  std::optional<std::filesystem::path> resume_from() const override { return resume_from_; }
  std::span<std::byte> shared_memory() const override { return shared_memory_.bytes(); }
  std::uint32_t cores() const override;
  std::uint32_t server_threads() const override;

  /// Measures the cost of a step for a worker that emulates a device.
  wire::Join introduction(Role role, Rank index, Replica& replica) const override;
  /// Lowers the priority of this thread, so that training runs before tests.
  void before_evaluating() const override;

  /// Returns the job description for nodes that ask for it before they join.
  wire::JobDescription description() const;
  /// Returns a text with the values on which every member must agree.
  std::string agreement() const { return plan_.agreement(parameters()); }

 protected:
  /// Makes the memory that the workers of one host share, if the scheme needs it. The caller forks
  /// or starts the workers afterwards. Errors: DataError.
  void share_memory(std::uint64_t buffers);

 private:
  /// Returns the name of a member's device. Errors: ConfigError.
  virtual std::string device(Role role, Rank index) const = 0;
  /// Returns the number of the model's parameters.
  virtual std::uint64_t parameters() const = 0;

  JobPlan plan_;
  RunFolder folder_;
  Dataset dataset_;
  std::optional<std::filesystem::path> resume_from_;
  InheritedMemory shared_memory_;
};

}  // namespace syncopate
