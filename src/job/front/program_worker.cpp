#include "job/front/program_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"

namespace syncopate {
namespace {

/// Errors: ProtocolError.
shm::SegmentAddress address_of(const wire::Training::SharedMemory& memory) {
  shm::SegmentAddress address{
      .machine = memory.machine(), .pid = memory.pid(), .descriptor = memory.number()};
  if (static_cast<std::size_t>(memory.secret_size()) != address.secret.size()) {
    throw ProtocolError("the coordinator sent an address of shared memory without its secret");
  }
  std::ranges::copy(memory.secret(), address.secret.begin());
  return address;
}

TrainConfig in_folder(TrainConfig config, const std::string& folder) {
  config.run_dir = folder;
  return config;
}

}  // namespace

ProgramWorker::ProgramWorker(ProgramNode& node, std::unique_ptr<ProgramReplica> replica,
                             const Options& options)
    : site_(in_folder(options.config, options.training.run_dir()), options.model),
      replica_(std::move(replica)),
      worker_(options_of(options)),
      link_(node.link()) {
  link_.set_join(site_.introduction(Role::worker, worker_.rank, *replica_));
  {
    const MutexLock lock(mutex_);
    is_in_job_ = true;
  }
  run([&] {
    session_.emplace(node.world(), link_, *replica_, worker_);
    session_->start();
    start_next_step();
  });
}

WorkerOptions ProgramWorker::options_of(const Options& options) {
  if (options.training.has_memory()) {
    site_.use(shm::Segment::open(address_of(options.training.memory())));
  }
  WorkerOptions worker = worker_options(site_, options.rank);
  worker.program = options.loop;
  return worker;
}

ProgramWorker::~ProgramWorker() {
  if (!ended_) {
    end_by(std::make_exception_ptr(Error("the program has left its loop")));
  }
}

void ProgramWorker::begin_pass(std::uint32_t samples) {
  run([&] { receive_gradient(samples); });
}

void ProgramWorker::ready(std::size_t begin, std::size_t end) {
  if (!ended_ && gradient_) {
    gradient_->ready(begin, end);
  }
}

void ProgramWorker::step(std::uint32_t samples, const StepSettings& settings,
                         const GradientSet& gradients) {
  run([&] {
    replica_->computed(settings, gradients);
    if (!has_begun_) {
      receive_gradient(samples);
    }
    if (gradient_) {
      gradient_->report_rest();
    }
    session_->end({.samples = samples, .loss_sum = std::numeric_limits<double>::quiet_NaN()});
    start_next_step();
  });
}

std::span<const std::uint32_t> ProgramWorker::next_parts() const {
  return session_ ? session_->parts() : std::span<const std::uint32_t>();
}

void ProgramWorker::step_alone(std::uint32_t /*samples*/, bool /*finite*/) {
  throw ConfigError("a step alone in a job of other processes, which look at the gradient");
}

void ProgramWorker::align(const std::string& place) {
  run([&] {
    session_->align(place);
    if (session_->is_done()) {
      start_next_step();  // reports the end of the job
    }
  });
}

void ProgramWorker::take_replica() {
  run([&] { session_->take_replica(); });
}

void ProgramWorker::finish() {
  if (ended_ && !failure_) {
    return;
  }
  run([&] {
    session_->finish();
    leave();
  });
}

/// The program computes the next gradient now, or the job has ended.
void ProgramWorker::start_next_step() {
  has_begun_ = false;
  gradient_.reset();
  if (session_->is_done()) {
    session_->finish();
    leave();
    expect_running();
  }
  const std::uint32_t wanted = session_->begin();
  next_samples_ = wanted > 0 ? wanted : worker_.plan.batch_sizes()[worker_.rank.value];
  session_->compute(next_samples_);
}

void ProgramWorker::receive_gradient(std::uint32_t samples) {
  has_begun_ = true;
  if (GradientSink* const sink = session_->sink(samples)) {
    gradient_.emplace(*sink, replica_->view(ReplicaVector::grads).size());
  }
}

template <class Call>
void ProgramWorker::run(const Call& call) {
  expect_running();
  try {
    link_.check();  // the job may have ended while the program computed
    {
      const MutexLock lock(mutex_);
      if (!abandoned_.empty()) {
        throw Error(abandoned_);
      }
    }
    call();
  } catch (const interruption::Interrupted&) {
    end_by(std::current_exception());
    throw;  // in this call; later ones throw what the coordinator has answered
  } catch (const std::exception&) {
    if (ended_) {
      throw;  // the job has ended without an error
    }
    end_by(std::current_exception());
    std::rethrow_exception(failure_);
  }
}

void ProgramWorker::expect_running() {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (ended_) {
    throw Cancelled(
        fmt::format("the job has ended{}, so the program's loop can take no further step",
                    stopped_by_.empty() ? "" : fmt::format(" ({})", stopped_by_)));
  }
}

/// Reports the error to the coordinator, which answers with the cause.
void ProgramWorker::end_by(const std::exception_ptr& error) {
  try {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& own) {
      link_.fail(own);
    }
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
  leave();
}

void ProgramWorker::leave() {
  ended_ = true;
  stopped_by_ = link_.stop_reason().value_or("");
  {
    const MutexLock lock(mutex_);
    is_in_job_ = false;
  }
  gradient_.reset();
  session_.reset();
}

void ProgramWorker::abandon(const std::string& reason) {
  const MutexLock lock(mutex_);
  if (!abandoned_.empty() || !is_in_job_) {
    return;
  }
  abandoned_ = reason;
  wire::ToCoordinator message;
  *message.mutable_abort() = to_abort(Error(reason));
  link_.send(message);
}

}  // namespace syncopate
