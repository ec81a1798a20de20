#include "job/program/pending_receive.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

PendingReceive::PendingReceive(const Clock& clock, Duration limit, Attempt attempt)
    : clock_(clock), until_(clock.now() + limit), attempt_(std::move(attempt)) {}

bool PendingReceive::done() {
  if (!done_) {
    attempt(clock_.now());
  }
  return done_;
}

void PendingReceive::wait() {
  while (!wait_for(until_ - clock_.now())) {
  }
}

bool PendingReceive::wait_for(Duration limit) {
  const TimePoint deadline = std::min(clock_.now() + limit, until_);
  if (waiting_.exchange(true)) {
    throw ConfigError("two threads wait for the same receive; let one of them wait");
  }
  while (!done_ && !attempt(deadline)) {
    std::this_thread::yield();  // another thread looks whether it is done, which takes microseconds
  }
  waiting_ = false;
  if (!done_ && clock_.now() >= until_) {
    give_up();
  }
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  return done_;
}

/// A message that comes later stays for the next receive.
void PendingReceive::give_up() {
  while (attempting_.exchange(true)) {
    std::this_thread::yield();
  }
  if (!done_) {
    attempt_ = nullptr;
    failure_ = std::make_exception_ptr(
        TimedOut("a receive has got nothing within the limit of its group"));
    done_ = true;
  }
  attempting_ = false;
}

std::optional<Rank> PendingReceive::source() {
  return done() ? source_ : std::nullopt;
}

bool PendingReceive::attempt(TimePoint deadline) {
  if (attempting_.exchange(true)) {
    return false;
  }
  if (!done_) {
    try {
      source_ = attempt_(deadline);
      done_ = source_.has_value();
    } catch (const std::exception&) {
      failure_ = std::current_exception();
      done_ = true;
    }
  }
  attempting_ = false;
  return true;
}

}  // namespace syncopate
