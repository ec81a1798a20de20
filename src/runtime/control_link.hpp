#pragma once

#include <exception>
#include <functional>

#include "base/time.hpp"
#include "runtime/job_view.hpp"
#include "wire/control.hpp"

namespace syncopate {

/// A member's link to the coordinator, for parts of the runtime that have control messages of their
/// own.
///
/// Thread: any.
class ControlLink {
 public:
  using Handler = std::function<void(const wire::FromCoordinator&)>;

  virtual ~ControlLink() = default;

  virtual void send(const wire::ToCoordinator& message) = 0;
  /// Sets the handler of one kind of message. The receive loop calls it, and it must not block. A
  /// handler that is set before the member joins misses no message. An empty handler ends the
  /// calls: none is under way once this returns.
  virtual void on(wire::FromCoordinator::BodyCase kind, Handler handler) = 0;
};

/// Serves control messages at the coordinator that are not about membership. The coordinator calls
/// it from its own task, in the order of events.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;

  /// All members have joined; they receive the view after this call.
  virtual void view_installed(const View& view) = 0;
  /// Handles a message of a member. Returns false for a message that is not its own.
  /// Errors: ProtocolError if the message contradicts earlier ones.
  virtual bool handle(const Member& from, const wire::ToCoordinator& message) = 0;
  /// A worker has arrived at a barrier. Errors: ConfigError, which ends the job.
  virtual void arrived(const Member& from, const wire::Arrived& arrived) = 0;
  /// The workers restart: adds to the message that releases them.
  virtual void before_restart(wire::Released& released) = 0;
  /// The workers were released, and restart.
  virtual void restarted() = 0;
  /// The member has left, or was dropped.
  virtual void gone(const Member& member) = 0;
  /// The time at which `tick` is due next. A time in the past means that none is due.
  virtual TimePoint next_tick() const = 0;
  /// Called after every event, and at `next_tick`.
  virtual void tick() = 0;
};

/// Converts an Abort to the error that it describes.
std::exception_ptr to_error(const wire::Abort& abort);
/// Converts an error to the Abort that reports it to the other members.
wire::Abort to_abort(const std::exception& error);

}  // namespace syncopate
