#include <exception>
#include <utility>

#include "base/end_request.hpp"
#include "device/cluster_file.hpp"
#include "job/host/coordinate.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/event_pipe.hpp"
#include "job/launch/exit_status.hpp"
#include "job/roles/processes.hpp"
#include "sim/job/simulated_job.hpp"
#include "transport/steady_time.hpp"

namespace syncopate {
namespace {

/// Real time for status reports: they are for the user.
class RealClock final : public Clock {
 public:
  TimePoint now() const override { return steady_now(); }
};

/// The deepest network needs less than 1 MiB; a page that is never touched costs nothing.
constexpr std::size_t stack_bytes = std::size_t{8} << 20;

int status_of_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return status_of(error);
  }
}

int simulate(const TrainingJob& job, int descriptor) {
  take_end_requests();
  EventPipe events(descriptor);
  const RealClock watch;
  sim::SimulatedJob simulated(
      {.config = job.config(),
       .dataset = job.dataset(),
       .make_replica = [&job] { return job.make_replica(Role::evaluator, Rank{0}); },
       .resume = job.resume_from().has_value(),
       .network = {.link = read_cluster_file(job.config().cluster).link},
       .scheduler = {.stack_bytes = stack_bytes},
       .emit = [&events](const Recorder::Json& event) { events.emit(event); },
       .interrupted = end_requested,
       .watch = &watch,
       .keep_models = false,
       .wall_time = wall_seconds()});
  try {
    simulated.run();
  } catch (const sim::NodeFailed&) {
    // A job may continue without a worker that failed, so the coordinator's end decides.
    if (simulated.failure()) {
      return status_of_failure(simulated.failure());
    }
    if (simulated.summary().is_null()) {
      throw;
    }
  }
  return exit_status::success;
}

}  // namespace

Child simulation_process(const TrainingJob& job, Descriptor events) {
  const int descriptor = events.get();
  Child child{.name = "simulation",
              .body = [&job, descriptor] { return simulate(job, descriptor); }};
  child.alone.push_back(std::move(events));
  return child;
}

}  // namespace syncopate
