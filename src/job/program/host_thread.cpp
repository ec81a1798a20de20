#include "job/program/host_thread.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "job/launch/environment.hpp"
#include "job/program/program_host.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

constexpr Duration time_to_close = std::chrono::seconds(2);

std::unique_ptr<Transport> listener_with(const std::string& key,
                                         const ProgramHostThread::Options& options) {
  return listen_over("shm", {.token = key,
                             .address = options.address,
                             .encrypted = !options.key.empty(),
                             .unencrypted = options.unencrypted,
                             .control_only = true});
}

/// Of HOST:PORT, where PORT is taken.
std::string with_free_port(const std::string& address) {
  return address.substr(0, address.rfind(':')) + ":0";
}

}  // namespace

ProgramHostThread::ProgramHostThread(std::uint32_t programs, const Options& options)
    : place_{.address = {}, .token = options.key.empty() ? unguessable_token() : options.key},
      world_(listener_with(place_.token, options)) {
  place_.address = world_.transport().address();
  task_ = world_.spawn("coordinator", [this, programs, options] { run(programs, options); });
}

ProgramHostThread::~ProgramHostThread() {
  MutexLock lock(mutex_);
  if (!interruption::wait(lock, changed_, [this]() REQUIRES(mutex_) { return ended_; })) {
    interrupted_ = true;
  }
}

void ProgramHostThread::publish(const std::string& job) {
  rendezvous_.emplace(job);
  rendezvous_->publish(place_);
}

void ProgramHostThread::run(std::uint32_t programs, const Options& options) {
  coordinate(programs, options);
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

/// Each program gets the error that ends the job, so it is not needed here.
void ProgramHostThread::coordinate(std::uint32_t programs, const Options& options) {
  try {
    ProgramHost(world_, {.programs = programs,
                         .interrupted = [this] { return interrupted_.load(); },
                         .name = fmt::format("the coordinator (a thread of worker 0, pid {} on {})",
                                             process_id(), host_name()),
                         .wall_time = wall_seconds(),
                         .key = place_.token,
                         .address = with_free_port(options.address),
                         .place = options.place,
                         .encrypted = !options.key.empty(),
                         .unencrypted = options.unencrypted})
        .run();
  } catch (const std::exception& error) {
    log::debug("{}", error.what());
  }
  world_.transport().close(world_.now() + time_to_close);
}

}  // namespace syncopate
