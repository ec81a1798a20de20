#include "sim/sim_world.hpp"

#include <fmt/format.h>

#include <deque>
#include <utility>

namespace syncopate::sim {
namespace {

class Sleep final : public Waiting {
 public:
  std::string describe() const override { return "a sleep to end"; }
};

class SimTask final : public Task, private Waiting {
 public:
  SimTask(Node& node, std::string name, std::function<void()> body)
      : node_(node), name_(std::move(name)) {
    node_.start(name_, [this, body = std::move(body)] { run(body); });
  }
  ~SimTask() override { end_.await_quietly(node_, *this); }
  SimTask(const SimTask&) = delete;
  SimTask& operator=(const SimTask&) = delete;

  void join() override {
    end_.await(node_, *this, no_deadline);
    if (const std::exception_ptr error = std::exchange(error_, nullptr)) {
      std::rethrow_exception(error);
    }
  }

 private:
  void run(const std::function<void()>& body) {
    try {
      if (!node_.dead()) {
        body();
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    end_.complete();
  }

  std::string describe() const override { return fmt::format("the end of {}", name_); }

  Node& node_;
  std::string name_;
  Completion end_;
  std::exception_ptr error_;
};

class SimEvent final : public Event, private Waiting {
 public:
  explicit SimEvent(Node& node) : node_(node) {}

  void notify() override {
    if (waiters_.empty()) {
      kept_ = true;
      return;
    }
    Completion& first = *waiters_.front();
    waiters_.pop_front();
    first.complete();
  }

  bool wait(TimePoint deadline) override {
    node_.check();
    if (std::exchange(kept_, false)) {
      return true;
    }
    Completion notified;
    const Place place(waiters_, notified);
    return notified.await(node_, *this, deadline);
  }

 private:
  using Waiters = std::deque<Completion*>;

  /// Keeps a waiter in the list of waiters while it waits.
  class Place {
   public:
    Place(Waiters& waiters, Completion& waiter) : waiters_(waiters), waiter_(waiter) {
      waiters_.push_back(&waiter_);
    }
    ~Place() { std::erase(waiters_, &waiter_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Waiters& waiters_;
    Completion& waiter_;
  };

  std::string describe() const override { return "an event"; }

  Node& node_;
  bool kept_ = false;
  Waiters waiters_;
};

}  // namespace

void SimWorld::sleep_until(TimePoint when) {
  do {
    node_.block(Sleep{}, when);
  } while (now() < when);
}

std::unique_ptr<Task> SimWorld::spawn(const std::string& name, std::function<void()> body) {
  return std::make_unique<SimTask>(node_, "task " + name, std::move(body));
}

std::unique_ptr<Event> SimWorld::make_event() {
  return std::make_unique<SimEvent>(node_);
}

void SimWorld::cancel(std::exception_ptr why) noexcept {
  node_.cancel(why);
  transport_.cancel(std::move(why));
}

}  // namespace syncopate::sim
