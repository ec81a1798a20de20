#include "job/program/launcher_link.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/end_request.hpp"
#include "base/errors.hpp"
#include "job/host/join.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/exit_status.hpp"
#include "report/events.hpp"
#include "runtime/control_link.hpp"
#include "runtime/real_world.hpp"
#include "transport/tags.hpp"
#include "wire/control.hpp"

namespace syncopate {
namespace {

constexpr NodeId coordinator{0};
/// The end of a program, and the user's request, are passed on this soon.
constexpr Duration report_every = std::chrono::milliseconds(100);
constexpr Duration time_to_part = std::chrono::seconds(2);

class LauncherLink {
 public:
  LauncherLink(World& world, const HostPart& part, ProgramEnds& ends, EventPipe& events,
               const std::function<void()>& welcome)
      : world_(world), part_(part), ends_(ends), events_(events), welcome_(welcome) {}

  void greet(std::uint32_t programs) {
    wire::ToCoordinator message;
    wire::LauncherHello& hello = *message.mutable_launcher_hello();
    hello.set_first(part_.first);
    hello.set_count(part_.count);
    hello.set_size(programs);
    hello.set_host(host_name());
    send(message);
  }

  /// True once the coordinator has reported the failure of the job.
  bool reported_failure() const { return reported_failure_; }

  /// Errors: the error that has ended the job.
  void run() {
    while (!over_) {
      if (const auto message = world_.transport().try_receive(coordinator, tags::from_coordinator,
                                                              world_.now() + report_every)) {
        take(wire::decode_from_coordinator(message->payload));
      }
      report();
    }
  }

 private:
  void take(const wire::FromCoordinator& message) {
    switch (message.body_case()) {
      case wire::FromCoordinator::kEvent: pass_on(message.event()); break;
      case wire::FromCoordinator::kAbort: std::rethrow_exception(to_error(message.abort()));
      case wire::FromCoordinator::kLauncherWelcome: welcome_(); break;
      case wire::FromCoordinator::kEnded: over_ = true; break;
      default: break;
    }
  }

  /// The supervisor numbers only the programs of this host.
  void pass_on(const std::string& line) {
    const auto worker = events::left_in(line);
    const auto event = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (event.is_discarded()) {
      throw ProtocolError("the coordinator sent an event that is not JSON");
    }
    if (!worker) {
      reported_failure_ |= events::end_in(line) == false;
      events_.emit(event);
    } else if (*worker >= part_.first && *worker - part_.first < part_.count) {
      events_.emit(events::left(*worker - part_.first));
    }
  }

  void report() {
    for (const ProgramEnd& end : ends_.take()) {
      wire::ToCoordinator message;
      message.mutable_program_ended()->set_rank(part_.first + end.rank);
      message.mutable_program_ended()->set_wait_status(end.wait_status);
      send(message);
    }
    if (!asked_ && end_requested()) {
      asked_ = true;
      wire::ToCoordinator message;
      message.mutable_end_request();
      send(message);
    }
  }

  void send(const wire::ToCoordinator& message) {
    world_.transport().post(coordinator, tags::to_coordinator, wire::encode(message));
  }

  World& world_;
  const HostPart& part_;
  ProgramEnds& ends_;
  EventPipe& events_;
  const std::function<void()>& welcome_;
  bool asked_ = false;
  bool over_ = false;
  bool reported_failure_ = false;
};

int fail(const std::exception& error, EventPipe& events) {
  events.emit({{"event", "failed"},
               {"kind", wire::Abort::Kind_Name(to_abort(error).kind())},
               {"error", error.what()}});
  return status_of(error);
}

int follow_in(World& world, const ProgramsRequest& request, ProgramEnds& ends, EventPipe& events,
              const std::function<void()>& welcome) {
  LauncherLink link(world, *request.part, ends, events, welcome);
  int status = exit_status::success;
  try {
    link.greet(request.workers);
    link.run();
  } catch (const PeerLost& loss) {
    status = fail(
        Error(fmt::format("the coordinator at {} is lost: {}", request.part->address, loss.what())),
        events);
  } catch (const std::exception& error) {
    status = link.reported_failure() ? status_of(error) : fail(error, events);
  }
  world.transport().close(world.now() + time_to_part);
  return status;
}

}  // namespace

int follow_coordinator(const ProgramsRequest& request, const std::string& key, ProgramEnds& ends,
                       EventPipe& events, const std::function<void()>& welcome) {
  try {
    RealWorld world(reach_coordinator({.address = request.part->address,
                                       .token = key,
                                       .encrypted = true,
                                       .index = {},
                                       .gather_limit = request.gather_limit,
                                       .given = {}}));
    return follow_in(world, request, ends, events, welcome);
  } catch (const TimedOut& error) {
    return fail(TimedOut(fmt::format(
                    "no coordinator has answered at {} within {:.0f} s (--gather-limit): {}",
                    request.part->address, to_seconds(request.gather_limit), error.what())),
                events);
  } catch (const std::exception& error) {
    return fail(error, events);
  }
}

}  // namespace syncopate
