#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "job/front/loop_worker.hpp"
#include "job/program/program_node.hpp"
#include "train/program_replica.hpp"
#include "train/worker_session.hpp"

namespace syncopate {

/// A program as a worker of a training: joins it, and drives the worker's session on the thread of
/// the program's loop.
///
/// Errors:  of all calls: the error that ended the job, in every call from then on. Cancelled if
///          the user has ended the job, and if the program is interrupted while a call waits
///          (`interruption`), which ends the job.
class ProgramWorker final : public LoopWorker {
 public:
  struct Options {
    const TrainConfig& config;
    const LoopModel& model;
    const wire::Training& training;
    Rank rank;
    ProgramLoop loop;
  };

  /// Joins the training by the program's node, which outlives this, and blocks until all workers
  /// have joined: `replica` then has the parameters for the first step.
  ProgramWorker(ProgramNode& node, std::unique_ptr<ProgramReplica> replica, const Options& options);
  /// Ends the worker by an error, unless it has ended.
  ~ProgramWorker() override;
  ProgramWorker(const ProgramWorker&) = delete;
  ProgramWorker& operator=(const ProgramWorker&) = delete;

  void begin_pass(std::uint32_t samples) override;
  void ready(std::size_t begin, std::size_t end) override;
  void step(std::uint32_t samples, const StepSettings& settings,
            const GradientSet& gradients) override;
  void step_alone(std::uint32_t samples, bool finite) override;
  std::uint64_t samples() const override { return replica_->samples(); }
  std::uint32_t next_samples() const override { return next_samples_; }
  std::span<const std::uint32_t> next_parts() const override;
  void align(const std::string& place) override;
  void take_replica() override;
  void finish() override;
  void abandon(const std::string& reason) override;

 private:
  /// Runs a call of the session; its error ends this worker.
  template <class Call>
  void run(const Call& call);
  void start_next_step();
  void receive_gradient(std::uint32_t samples);
  void end_by(const std::exception_ptr& error);
  void leave();
  void expect_running();
  WorkerOptions options_of(const Options& options);

  LoopSite site_;
  const std::unique_ptr<ProgramReplica> replica_;
  const WorkerOptions worker_;
  MemberLink& link_;

  std::optional<ReportedGradient> gradient_;  ///< of the pass that has begun, if a sink takes it
  bool has_begun_ = false;                    ///< the pass of the step
  std::uint32_t next_samples_ = 0;            ///< of the step, as the scheme wants it
  bool ended_ = false;
  std::exception_ptr failure_;  ///< that has ended this worker
  std::string stopped_by_;      ///< why the coordinator has stopped the training, if it has

  Mutex mutex_;
  std::string abandoned_ GUARDED_BY(mutex_);   ///< the reason; empty: it is not
  bool is_in_job_ GUARDED_BY(mutex_) = false;  ///< this worker

  std::optional<WorkerSession> session_;  ///< last: it uses the members above
};

}  // namespace syncopate
