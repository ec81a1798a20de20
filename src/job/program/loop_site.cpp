#include "job/program/loop_site.hpp"

#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/machine.hpp"
#include "job/launch/environment.hpp"
#include "scheme/shared_model.hpp"

namespace syncopate {
namespace {

/// The layout of a model without its values: what a server needs.
class LayoutReplica final : public Replica {
 public:
  explicit LayoutReplica(const LoopModel& model) : model_(model) {}

  std::vector<TensorInfo> layout(ReplicaVector which) const override {
    const bool buffers = which == ReplicaVector::buffers;
    const auto values = static_cast<std::int64_t>(buffers ? model_.buffers : model_.parameters);
    return {{.name = buffers ? "buffers" : "parameters", .shape = {values}, .offset = 0}};
  }
  std::span<float> view(ReplicaVector /*which*/) override { refuse(); }
  void store(ReplicaVector /*which*/) override { refuse(); }
  PassResult backward(const Batch& /*batch*/, GradientSink* /*sink*/) override { refuse(); }
  PassResult evaluate(const Batch& /*batch*/) override { refuse(); }
  void recompute_statistics(const std::function<bool(Batch&)>& /*next*/) override { refuse(); }
  void initialise(std::uint64_t /*seed*/) override { refuse(); }
  void set_learning_rate(double /*rate*/) override { refuse(); }
  void local_step() override { refuse(); }
  OptimizerState optimizer_state() const override { refuse(); }
  void load_optimizer_state(const OptimizerState& /*state*/) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw InternalError("a server was given a replica without values, and used it");
  }

  LoopModel model_;
};

}  // namespace

LoopSite::LoopSite(const TrainConfig& config, const LoopModel& model)
    : HostSite(config, samples_without_values(model.samples), std::nullopt), model_(model) {}

std::size_t LoopSite::bytes_of_workers() const {
  return uses_shared_model(config()) ? SharedModel::bytes_for({.params = model_.parameters,
                                                               .buffers = model_.buffers,
                                                               .workers = config().workers})
                                     : 0;
}

std::span<std::byte> LoopSite::shared_memory() const {
  return memory_ ? memory_->bytes() : std::span<std::byte>();
}

std::unique_ptr<Replica> LoopSite::make_replica(Role role, Rank /*index*/) const {
  if (role != Role::server) {
    throw InternalError("the replica of a worker is the program's own");
  }
  return std::make_unique<LayoutReplica>(model_);
}

wire::Join LoopSite::introduction(Role role, Rank index, Replica& /*replica*/) const {
  wire::Join join = join_message(role, index);
  join.set_host(host_name());
  join.set_pid(process_id());
  join.set_device(role == Role::worker ? plan().device_name(index, device(role, index)) : "cpu");
  join.set_agreement(agreement());
  join.set_machine(machine_identity());
  return join;
}

std::string LoopSite::device(Role /*role*/, Rank /*index*/) const {
  return "the program's";
}

Dataset samples_without_values(std::uint64_t samples) {
  Dataset dataset;
  dataset.name = "samples without values";
  dataset.classes = 1;
  dataset.train.shape = dataset.test.shape = {.channels = 1, .height = 0, .width = 0};
  dataset.train.labels.resize(samples);
  return dataset;
}

}  // namespace syncopate
