#include "job/host/coordinate.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "base/end_request.hpp"
#include "base/log.hpp"
#include "base/thread_stacks.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/event_pipe.hpp"
#include "job/launch/exit_status.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
InProcessMembers::InProcessMembers(World& world, const CoordinatorEndpoint& endpoint,
                                   const std::vector<std::unique_ptr<RoleRunner>>& members) {
  for (const auto& member : members) {
    RoleRunner& runner = *member;
    tasks_.push_back(world.spawn("member", [this, &runner, endpoint] { run(endpoint, runner); }));
  }
}

void InProcessMembers::run(const CoordinatorEndpoint& endpoint, RoleRunner& member) {
  run_member(endpoint, [&](World& world) {
    enter(world);
    try {
      member.run(world, report_hang);
    } catch (...) {
      leave(world);
      throw;
    }
    leave(world);
  });
}

void InProcessMembers::enter(World& world) {
  const MutexLock lock(mutex_);
  if (cancelled_) {
    world.cancel(cancelled_);
  }
  worlds_.push_back(&world);
}

void InProcessMembers::leave(World& world) {
  const MutexLock lock(mutex_);
  std::erase(worlds_, &world);
}

void InProcessMembers::cancel(const std::exception_ptr& why) {
  const MutexLock lock(mutex_);
  cancelled_ = why;
  for (World* const world : worlds_) {
    world->cancel(why);
  }
}

void InProcessMembers::join() {
  for (const auto& task : tasks_) {
    task->join();
  }
}

Membership::Options membership_of(const HostSite& site, Duration gather_limit, bool by_hand) {
  Membership::Options membership = site.plan().membership();
  membership.gathering = gather_limit;
  if (by_hand) {
    membership.agreement = site.agreement();
  }
  return membership;
}

int coordinate(const HostSite& site, const CoordinateOptions& options) {
  take_end_requests();
  RealWorld world(listen(options.endpoint, options.listener));
  EventPipe events(options.events);
  const auto emit = [&](const Recorder::Json& event) { events.emit(event); };
  if (options.by_hand) {
    const std::string listening = fmt::format("listening at {}", options.endpoint.address);
    emit({{"event", "note"}, {"text", options.note.empty() ? listening : options.note}});
    if (!options.key_file.empty()) {
      emit({{"event", "note"},
            {"text", fmt::format("to join: syncopate worker --join {} --secret {}",
                                 options.endpoint.address, options.key_file)}});
    }
  }
  std::vector<std::unique_ptr<RoleRunner>> members;
  std::optional<InProcessMembers> running;  // destroyed before the members that it uses
  int status = exit_status::success;
  try {
    run_coordinator(
        world, site,
        {.membership = membership_of(site, options.gather_limit, options.by_hand),
         .description = site.description(),
         .emit = emit,
         .interrupted = end_requested,
         .before_gathering =
             [&] {
               members = options.in_process();
               running.emplace(world, options.endpoint, members);
             },
         .name = fmt::format("the coordinator (pid {} on {})", process_id(), host_name()),
         .hung =
             [&](const std::string& reason) {
               emit({{"event", "failed"},
                     {"kind", wire::Abort::Kind_Name(wire::Abort::KIND_TIMED_OUT)},
                     {"error", reason}});
               events.finish();
               report_hang(reason);
               ::_exit(exit_status::failure);  // an exit would wait for the hung thread
             },
         .wall_time = wall_seconds()});
  } catch (const std::exception& error) {
    status = status_of(error);
  }
  world.transport().close(world.now());  // ends members that still run after an error
  return status;
}

namespace {

int warn_of(const std::exception& error) {
  log::warn("{}", error.what());
  return status_of(error);
}

/// Processes without an MPI launcher try shared memory first.
std::string_view transport_of(TransportKind kind) {
  return name_of_value(kind == TransportKind::automatic ? TransportKind::shm : kind);
}

}  // namespace

std::unique_ptr<Transport> listen(const CoordinatorEndpoint& endpoint, int listener) {
  return listen_over(transport_of(endpoint.transport), {.token = endpoint.token,
                                                        .descriptor = listener,
                                                        .encrypted = endpoint.encrypted,
                                                        .control_only = true,
                                                        .session = endpoint.session});
}

CoordinatorEndpoint endpoint_of(const KnownCoordinator& known, TransportKind transport) {
  return {.address = known.address,
          .token = known.key,
          .transport = transport,
          .own_place = known.place,
          .encrypted = true};
}

std::unique_ptr<Transport> connect(const CoordinatorEndpoint& endpoint) {
  return join_over(transport_of(endpoint.transport), {.token = endpoint.token,
                                                      .coordinator = endpoint.address,
                                                      .address = endpoint.own_address,
                                                      .interface = endpoint.own_place.interface,
                                                      .ports = endpoint.own_place.ports,
                                                      .encrypted = endpoint.encrypted,
                                                      .unencrypted = endpoint.unencrypted,
                                                      .session = endpoint.session});
}

void report_hang(const std::string& reason) {
  log_thread_stacks(fmt::format("this process is said to hang: {}; its threads:", reason));
}

int run_member(const CoordinatorEndpoint& endpoint, const std::function<void(World&)>& member) {
  try {
    RealWorld world(connect(endpoint));
    try {
      member(world);
    } catch (const std::exception& error) {
      log::debug("{}", error.what());  // the coordinator reports it
      return status_of(error);
    }
    return exit_status::success;
  } catch (const std::exception& error) {
    return warn_of(error);
  }
}

int run_member(const CoordinatorEndpoint& endpoint, const MakeMember& make) {
  try {
    const auto member = make();
    return run_member(endpoint, [&](World& world) { member->run(world, report_hang); });
  } catch (const std::exception& error) {
    return warn_of(error);
  }
}

}  // namespace syncopate
