#include "sim/node.hpp"

#include <fmt/format.h>

#include <utility>

namespace syncopate::sim {

std::string Node::title() const {
  return fmt::format("node {} ({})", id_.value, name_);
}

void Node::start(const std::string& task, std::function<void()> body) {
  const auto run = [this, body = std::move(body)] {
    body();
    std::erase(strands_, &scheduler_.current());
  };
  strands_.push_back(&scheduler_.start(fmt::format("{}, {},", title(), task), run));
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
    scheduler_.wake(*strand);
  }
}

}  // namespace syncopate::sim
