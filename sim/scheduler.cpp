#include "sim/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {

void Scheduler::schedule(TimePoint when, EventTarget& target, std::uint64_t argument) {
  events_.push_back({std::max(when, now_), scheduled_++, &target, argument});
  std::push_heap(events_.begin(), events_.end());
}

Strand& Scheduler::start(std::string name, std::function<void()> body) {
  const std::uint64_t number = started_++;
  auto strand =
      std::make_unique<Strand>(number, std::move(name), options_.stack_bytes, std::move(body));
  Strand& started = *strand;
  strands_.emplace(number, std::move(strand));
  ready_.push_back(&started);
  return started;
}

Strand& Scheduler::current() const {
  if (current_ == nullptr) {
    throw InternalError("a simulated node was asked to block from outside its own tasks");
  }
  return *current_;
}

bool Scheduler::block(const Waiting& waiting, TimePoint deadline) {
  Strand& self = current();
  self.waiting_ = &waiting;
  self.woken_ = false;
  self.since_ = now_;
  self.deadline_ = deadline;
  arm(self);
  self.fiber_.pause();
  return self.woken_;
}

void Scheduler::wake(Strand& strand) {
  if (strand.waiting_ != nullptr) {
    strand.woken_ = true;
    make_ready(strand);
  }
}

void Scheduler::thaw(Strand& strand) {
  strand.frozen_ = false;
  if (std::exchange(strand.held_, false)) {
    ready_.push_back(&strand);
  }
}

TimePoint Scheduler::next_step() const {
  if (!ready_.empty()) {
    return now_;
  }
  return events_.empty() ? no_deadline : events_.front().when;
}

bool Scheduler::step() {
  if (!ready_.empty()) {
    resume_next();
  } else if (!events_.empty()) {
    fire_next();
  } else {
    return false;
  }
  return true;
}

void Scheduler::run_ready() {
  switches_ = 0;
  while (!ready_.empty()) {
    resume_next();
  }
}

std::string Scheduler::blocked() const {
  std::map<std::uint64_t, std::string> lines;
  for (const auto& [number, strand] : strands_) {
    if (strand->waiting_ != nullptr) {
      lines[number] =
          fmt::format("\n  {} waits for {} since {:.9f} s", strand->name_,
                      strand->waiting_->describe(), to_seconds(strand->since_.time_since_epoch()));
    }
  }
  std::string all;
  for (const auto& [number, line] : lines) {
    all += line;
  }
  return all;
}

/// Most deadlines never pass, and the next one is later. So a strand keeps one event at a time. An
/// event that finds a later deadline when it fires is scheduled again for that one.
void Scheduler::arm(Strand& strand) {
  if (strand.deadline_ < strand.next_timer_) {
    strand.next_timer_ = std::max(strand.deadline_, now_);
    schedule(strand.next_timer_, *this, strand.number_);
  }
}

void Scheduler::fire(std::uint64_t strand_number) {
  const auto found = strands_.find(strand_number);
  if (found == strands_.end()) {
    return;
  }
  Strand& strand = *found->second;
  if (strand.next_timer_ == now_) {
    strand.next_timer_ = no_deadline;
  }
  if (strand.waiting_ == nullptr) {
    return;
  }
  if (strand.deadline_ <= now_) {
    make_ready(strand);
  } else {
    arm(strand);
  }
}

void Scheduler::make_ready(Strand& strand) {
  strand.waiting_ = nullptr;
  ready_.push_back(&strand);
}

void Scheduler::resume_next() {
  Strand& strand = *ready_.front();
  // The strand stays ready, so that `run_ready` can still end it.
  if (++switches_ > options_.switches_per_instant) {
    throw InternalError(
        fmt::format("{} runs without end at {:.9f} s of virtual time: a loop that "
                    "asks again and again must wait in between",
                    strand.name_, to_seconds(now_.time_since_epoch())));
  }
  ready_.pop_front();
  if (strand.frozen_) {
    strand.held_ = true;
    return;
  }
  current_ = &strand;
  strand.fiber_.resume();
  current_ = nullptr;
  if (strand.fiber_.ended()) {
    strands_.erase(strand.number_);
  }
}

void Scheduler::fire_next() {
  std::pop_heap(events_.begin(), events_.end());
  const Event event = events_.back();
  events_.pop_back();
  if (event.when != now_) {
    now_ = event.when;
    switches_ = 0;
  }
  event.target->fire(event.argument);
}

}  // namespace syncopate::sim
