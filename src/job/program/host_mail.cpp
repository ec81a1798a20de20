#include "job/program/host_mail.hpp"

#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "runtime/control_link.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Errors: PeerLost; ProtocolError.
wire::ToProgram next_message(Transport& transport, TimePoint deadline) {
  try {
    return to_program(
        transport.receive(coordinator_node, tags::from_coordinator, deadline).payload);
  } catch (const PeerLost&) {
    throw PeerLost(coordinator_node, "the coordinator of this job has ended");
  }
}

}  // namespace

wire::ToProgram HostMail::receive(const Wanted& wanted) {
  for (;;) {
    const TimePoint glance = world_.now() + interruption::every;
    MutexLock lock(mutex_);
    do {
      if (auto message = take(wanted)) {
        return *std::move(message);
      }
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      await_one(lock, glance);
    } while (world_.now() < glance);
    lock.unlock();
    interruption::throw_if_requested();
  }
}

std::exception_ptr HostMail::end_of_job(Duration limit) {
  const TimePoint deadline = world_.now() + limit;
  MutexLock lock(mutex_);
  while (!failure_ && world_.now() < deadline) {
    await_one(lock, deadline);
  }
  return ended_ ? failure_ : nullptr;
}

void HostMail::await_one(MutexLock& lock, TimePoint deadline) {
  if (receiving_) {
    changed_.wait_for(lock.native(), deadline - world_.now());
  } else {
    receive_one(lock, deadline);
  }
}

std::optional<wire::ToProgram> HostMail::take(const Wanted& wanted) {
  const auto found = std::ranges::find_if(kept_, wanted);
  if (found == kept_.end()) {
    return std::nullopt;
  }
  wire::ToProgram message = std::move(*found);
  kept_.erase(found);
  return message;
}

/// Releases the mutex while it waits, which the analysis does not follow through a reference.
void HostMail::receive_one(MutexLock& lock, TimePoint deadline) {
  receiving_ = true;
  lock.unlock();
  std::optional<wire::ToProgram> message;
  std::exception_ptr failure;
  try {
    message = next_message(world_.transport(), deadline);
  } catch (const TimedOut&) {  // nothing has come by then, or the error that has ended this node
    failure = world_.now() < deadline ? std::current_exception() : nullptr;
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  lock.lock();
  receiving_ = false;
  if (message) {
    keep(*std::move(message));
  } else {
    failure_ = failure;
  }
  changed_.notify_all();
}

void HostMail::keep(wire::ToProgram message) {
  if (message.has_abort()) {
    failure_ = to_error(message.abort());
    ended_ = true;
  } else if (message.has_ended()) {
    failure_ = std::make_exception_ptr(
        Cancelled("the job has ended, so the program gets no samples to train on"));
  } else {
    kept_.push_back(std::move(message));
  }
}

}  // namespace syncopate
