#include "sim/completion.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

/// Sets a pointer as long as it lives.
class Registration {
 public:
  Registration(Strand*& place, Strand& strand) : place_(place) { place_ = &strand; }
  ~Registration() { place_ = nullptr; }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Strand*& place_;
};

}  // namespace

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
