#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "pacer/pacer_client.hpp"
#include "scheme/shared_model.hpp"
#include "server/server_client.hpp"
#include "train/initial_state.hpp"
#include "train/member_roles.hpp"

namespace syncopate {

/// A worker's model, and its connections to the others, before its first step.
class WorkerSetup {
 public:
  WorkerSetup(World& world, MemberLink& link, PacerClient& pacer, Replica& replica,
              const WorkerOptions& options);

  const TrainingProgress& progress() const { return progress_; }
  /// The states of this worker's loop and of the pacer in the checkpoint.
  std::optional<LoopState> loop() const { return loop_state_in(own_); }
  std::optional<wire::PacerMemory> pacer() const;
  const States& states() const { return own_; }
  Group& workers() { return workers_; }
  /// The speed of the device by itself, as far as it is known before training.
  const DeviceMeasurement& device() const { return device_; }
  std::unique_ptr<Scheme> make_scheme();

 private:
  Averaging::Options averaging();
  const TrainConfig& config() const { return options_.plan.config(); }
  std::size_t values(ReplicaVector which) { return replica_.view(which).size(); }
  bool has_spare_core() const;
  bool all_cores_taken();
  TrainingProgress begin();
  TrainingProgress begin_together();
  TrainingProgress begin_from_server();
  void begin_in_shared_memory();

  const WorkerOptions& options_;
  Replica& replica_;
  PacerClient& pacer_;
  Group workers_;
  std::optional<ServerClient> server_;
  Reply server_start_{};
  OptimizerState outer_state_{};
  States own_;
  OptimizerState pacer_state_{};
  std::optional<SharedModel> shared_;
  DeviceMeasurement device_;
  TrainingProgress progress_;
};

}  // namespace syncopate
