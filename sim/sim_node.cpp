#include "sim/sim_node.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

/// Sets a pointer for its own lifetime.
class Registration {
 public:
  Registration(Strand*& waiter, Strand& strand) : waiter_(waiter) { waiter_ = &strand; }
  ~Registration() { waiter_ = nullptr; }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Strand*& waiter_;
};

}  // namespace

std::string Node::title() const {
  return fmt::format("node {} ({})", id_.value, name_);
}

void Node::start(const std::string& task, std::function<void()> body) {
  const auto run = [this, body = std::move(body)] {
    body();
    Strand& self = scheduler_.current();
    body_ = body_ == &self ? nullptr : body_;
    std::erase(strands_, &self);
  };
  const bool first = !std::exchange(started_, true);
  strands_.push_back(&scheduler_.start(fmt::format("{}, {},", title(), task), run));
  body_ = first ? strands_.back() : body_;
}

void Node::hang() {
  if (body_ != nullptr) {
    scheduler_.freeze(*body_);
  }
}

void Node::go_on() {
  if (body_ != nullptr) {
    scheduler_.thaw(*body_);
  }
}

bool Node::block(const Waiting& waiting, TimePoint deadline) {
  check();
  const bool woken = scheduler_.block(waiting, deadline);
  check();
  return woken;
}

void Node::block_quietly(const Waiting& waiting, TimePoint deadline) noexcept {
  scheduler_.block(waiting, deadline);
}

void Node::check() const {
  if (ended_by_) {
    std::rethrow_exception(ended_by_);
  }
}

void Node::cancel(std::exception_ptr why) noexcept {
  if (!ended_by_) {
    ended_by_ = std::move(why);
    wake_all();
  }
}

void Node::die() noexcept {
  dead_ = true;
  ended_by_ = std::make_exception_ptr(NodeDied{});
  wake_all();
}

void Node::wake_all() {
  for (Strand* const strand : strands_) {
    scheduler_.thaw(*strand);
    scheduler_.wake(*strand);
  }
}

void Completion::complete(std::exception_ptr error) {
  if (std::exchange(done_, true)) {
    return;
  }
  error_ = std::move(error);
  if (waiter_ != nullptr) {
    scheduler_->wake(*waiter_);
  }
}

void Completion::check() const {
  if (error_) {
    std::rethrow_exception(error_);
  }
}

bool Completion::await(Node& node, const Waiting& waiting, TimePoint deadline) {
  if (waiter_ != nullptr) {
    throw InternalError(node.title() + ": two tasks wait for the end of one transfer");
  }
  scheduler_ = &node.scheduler();
  while (!done_) {
    const Registration registration(waiter_, scheduler_->current());
    if (!node.block(waiting, deadline)) {
      break;
    }
  }
  return done_;
}

void Completion::await_quietly(Node& node, const Waiting& waiting) noexcept {
  scheduler_ = &node.scheduler();
  while (!done_) {
    const Registration registration(waiter_, scheduler_->current());
    node.block_quietly(waiting, no_deadline);
  }
}

}  // namespace syncopate::sim
