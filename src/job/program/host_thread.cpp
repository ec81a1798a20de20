#include "job/program/host_thread.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "job/launch/environment.hpp"
#include "job/program/program_host.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

constexpr Duration time_to_close = std::chrono::seconds(2);

std::unique_ptr<Transport> listener_with(const std::string& key) {
  return listen_over("shm", {.token = key, .control_only = true});
}

}  // namespace

ProgramHostThread::ProgramHostThread(std::uint32_t programs, const std::string& job)
    : place_{.address = {}, .token = unguessable_token()},
      world_(listener_with(place_.token)),
      rendezvous_(job) {
  place_.address = world_.transport().address();
  rendezvous_.publish(place_);
  task_ = world_.spawn("coordinator", [this, programs] { run(programs); });
}

ProgramHostThread::~ProgramHostThread() {
  task_->join();
}

/// Each program gets the error that ends the job, so it is not needed here.
void ProgramHostThread::run(std::uint32_t programs) {
  try {
    ProgramHost(world_, {.programs = programs,
                         .name = fmt::format("the coordinator (a thread of worker 0, pid {} on {})",
                                             process_id(), host_name()),
                         .wall_time = wall_seconds()})
        .run();
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
  world_.transport().close(world_.now() + time_to_close);
}

}  // namespace syncopate
