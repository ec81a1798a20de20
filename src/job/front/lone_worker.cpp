#include <utility>

#include "job/front/loop_worker.hpp"
#include "kernels/reduce.hpp"
#include "optim/schedule.hpp"
#include "train/gradient_check.hpp"

namespace syncopate {
namespace {

/// There is nobody to wait for, or to notify.
class LoneWorker final : public LoopWorker {
 public:
  LoneWorker(std::unique_ptr<ProgramReplica> replica, const TrainConfig& config,
             std::uint64_t samples)
      : replica_(std::move(replica)),
        schedule_(schedule_of(config)),
        finite_(*replica_, Rank{0}, config.on_nan),
        samples_of_epoch_(static_cast<double>(samples)) {
    finite_.keep_buffers();
  }

  void begin_pass(std::uint32_t /*samples*/) override {}
  void ready(std::size_t /*begin*/, std::size_t /*end*/) override {}
  void align(const std::string& /*place*/) override {}
  void take_replica() override { finite_.keep_buffers(); }
  std::uint64_t samples() const override { return samples_; }
  void finish() override {}
  void abandon(const std::string& /*reason*/) override {}

  void step(std::uint32_t samples, const StepSettings& /*settings*/,
            const GradientSet& /*gradients*/) override {
    step_alone(samples, has_finite_gradient());
  }

  void step_alone(std::uint32_t samples, bool finite) override {
    if (samples == 0) {
      return;  // its gradient weighs nothing, as in a job in which no worker has samples
    }
    ++steps_;
    if (!finite_.admit(finite, steps_, /*loss=*/{})) {
      return;
    }
    replica_->set_learning_rate(schedule_.rate(static_cast<double>(samples_) / samples_of_epoch_));
    replica_->local_step();
    samples_ += samples;
    finite_.keep_buffers();
  }

 private:
  /// As a worker of a job does, but for a model elsewhere, whose gradient stays there.
  bool has_finite_gradient() {
    return !replica_->is_in_host_memory() || all_finite(replica_->view(ReplicaVector::grads));
  }

  const std::unique_ptr<ProgramReplica> replica_;
  const Schedule schedule_;
  GradientCheck finite_;
  const double samples_of_epoch_;
  std::uint64_t steps_ = 0;
  std::uint64_t samples_ = 0;  ///< trained on
};

}  // namespace

std::unique_ptr<LoopWorker> lone_worker(std::unique_ptr<ProgramReplica> replica,
                                        const TrainConfig& config, std::uint64_t samples) {
  return std::make_unique<LoneWorker>(std::move(replica), config, samples);
}

}  // namespace syncopate
