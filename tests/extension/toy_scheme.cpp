// A scheme as an extension adds it: this file, and its line in scheme/schemes.inc.

#include <algorithm>

#include "config/option.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {

enum class Direction { down, up };
constexpr auto names_of(Direction) {
  return std::to_array<Named<Direction>>({{"down", Direction::down}, {"up", Direction::up}});
}

namespace option {

inline constexpr Option<Direction> direction{.name = "direction",
                                             .group = option_group::synchronization,
                                             .value = "NAME",
                                             .help = "of toy: with the loss, or against it"};

}  // namespace option

namespace {

/// Trains a single worker, which steps along its gradient or against it.
class Toy : public Scheme {
 public:
  Toy(Direction direction, Round done) : direction_(direction), round_(done) {}

  Outcome after_backward(Replica& replica, const StepFacts& facts) override {
    if (direction_ == Direction::up) {
      const std::span<float> gradient = replica.view(ReplicaVector::grads);
      std::transform(gradient.begin(), gradient.end(), gradient.begin(), std::negate<>());
      replica.store(ReplicaVector::grads);
    }
    replica.local_step();
    ++round_.value;
    return {.sync_round = SyncRound{.round = round_,
                                    .samples = facts.samples,
                                    .loss_sum = facts.loss_sum,
                                    .paused = facts.paused,
                                    .agreed = facts.requests}};
  }

 private:
  Direction direction_;
  Round round_;
};

std::unique_ptr<Scheme> make_toy(const SchemeContext& context) {
  return std::make_unique<Toy>(context.options[option::direction], context.done);
}

}  // namespace

const SchemeSpec& toy_scheme() {
  static const SchemeSpec spec{.name = "toy",
                               .formula = "w -= rate * g, or w += rate * g",
                               .source = "the tests",
                               .traits = {.topology = Topology::none, .compresses = false},
                               .options = {spec_of(option::direction)},
                               .make = make_toy};
  return spec;
}

}  // namespace syncopate
