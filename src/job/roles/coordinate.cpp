#include "job/roles/coordinate.hpp"

#include <fmt/format.h>

#include <optional>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "cli/exit_status.hpp"
#include "job/roles/outside.hpp"
#include "membership/coordinator.hpp"
#include "pacer/pacer_control.hpp"
#include "report/recorder.hpp"
#include "runtime/real_world.hpp"

namespace syncopate::cli {
namespace {

Membership::Options membership_of(const Job& job, const CoordinateOptions& options) {
  Membership::Options membership = job.plan().membership();
  membership.gathering = options.gather_limit;
  if (options.by_hand) {
    membership.agreement = job.agreement();
  }
  return membership;
}

/// Members in this process, each a node of its own. They end with the coordinator's transport.
class Residents {
 public:
  Residents(World& world, const CoordinateOptions& options) {
    if (options.residents) {
      members_ = options.residents();
    }
    for (const auto& member : members_) {
      tasks_.push_back(
          world.spawn("member", [&member, hub = options.hub] { run_member(hub, *member); }));
    }
  }

 private:
  std::vector<std::unique_ptr<Candidate>> members_;
  std::vector<std::unique_ptr<Task>> tasks_;  ///< last: they use the members
};

void run_job(const Job& job, const CoordinateOptions& options, World& world, Recorder& recorder) {
  Coordinator coordinator(
      world, recorder,
      {.membership = membership_of(job, options),
       .pacing = make_pacer_service(world, recorder, job.plan().pacing(job.rounds_done())),
       .description = job.description()});
  coordinator.run();
  recorder.finish();
}

}  // namespace

int coordinate(const Job& job, const CoordinateOptions& options) {
  heed_wish_for_end();
  RealWorld world(open_hub(options.hub, options.listener));
  const auto emit = [&](const Recorder::Json& event) { emit_line(options.events, event); };
  Recorder recorder(world, {.config = job.config(),
                            .folder = job.folder(),
                            .cores = std::thread::hardware_concurrency(),
                            .resumed = job.resume_from().has_value(),
                            .emit = emit,
                            .interrupted = end_is_wished});
  if (options.by_hand) {
    const std::string listening = fmt::format("listening at {}", options.hub.address);
    emit({{"event", "note"}, {"text", options.note.empty() ? listening : options.note}});
  }
  std::optional<Residents> residents;
  int status = exit_status::success;
  try {
    residents.emplace(world, options);
    run_job(job, options, world, recorder);
  } catch (const std::exception& error) {
    recorder.fail(error);
    status = status_of(error);
  }
  world.transport().close(world.now());  // which ends members that an error left behind
  return status;
}

}  // namespace syncopate::cli
