#include "membership/turn_watch.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate {

TurnWatch::TurnWatch(World& world, Options options)
    : world_(world), options_(std::move(options)), end_(world.make_event()) {
  task_ = world_.spawn("watch", [this] { run(); });
}

TurnWatch::~TurnWatch() {
  end();
  task_.reset();
}

void TurnWatch::end() {
  ended_ = true;
  end_->notify();
}

void TurnWatch::run() {
  std::uint64_t seen = turns_;
  Duration still{};
  try {
    while (still < options_.limit) {
      end_->wait(world_.now() + glance);
      if (ended_) {
        return;
      }
      const std::uint64_t turns = turns_;
      still = turns == seen ? still + glance : Duration::zero();
      seen = turns;
    }
    options_.stands_still(still);
  } catch (const Error&) {
    return;  // the node was cancelled: it ends with that error
  }
}

}  // namespace syncopate
