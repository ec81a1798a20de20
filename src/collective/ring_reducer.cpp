#include "collective/cost_model.hpp"
#include "collective/reducer.hpp"
#include "collective/segments.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

const ReducerSpec& ring_reducer();

namespace {

/// A ring (Patarasuk & Yuan 2009), of which this is one reduction under way on one rank.
///
/// The vector is cut into P chunks; chunk c begins at rank c. In P − 1 steps of reduce-scatter each
/// chunk goes once around the ring, and every rank adds its own part; in P − 1 steps of allgather
/// the results go around once more. Chunks travel in segments: a rank adds one while the next
/// arrives, and passes on each as soon as it is added.
class RingPass {
 public:
  RingPass(Group& group, std::span<float> values, float factor)
      : group_(group),
        values_(values),
        factor_(factor),
        left_(group.neighbour(group.size() - 1)),
        right_(group.neighbour(1)),
        reducing_(group),
        gathering_(group) {}

  void run() {
    reducing_.begin(right_, tags::parts, chunk_behind(0), factor_);
    for (std::uint32_t step = 1; step < group_.size(); ++step) {
      reduce(step);
    }
    // Gathering writes over the values that reducing sent. The sends of results are not awaited
    // here: the neighbour that receives them may be waiting at this line, too.
    reducing_.finish();
    gather();
    gathering_.finish();
  }

 private:
  /// The chunk that began `steps` ranks behind this one.
  std::span<float> chunk_behind(std::uint32_t steps) const {
    const std::uint32_t chunk = group_.neighbour(group_.size() - steps).value;
    const std::size_t begin = values_.size() * chunk / group_.size();
    const std::size_t end = values_.size() * (chunk + 1) / group_.size();
    return values_.subspan(begin, end - begin);
  }

  /// Adds this rank's own values to the chunk that arrives, and passes it on. After the last step
  /// it is complete.
  void reduce(std::uint32_t step) {
    const bool complete = step + 1 == group_.size();
    receive_and_add(group_, left_, chunk_behind(step), factor_,
                    {.after = [&](std::span<float> segment) {
                      complete ? gathering_.begin(right_, tags::sums, segment)
                               : reducing_.begin(right_, tags::parts, segment);
                    }});
  }

  /// Receives the results of all other chunks, and passes on all but the last.
  void gather() {
    Receives receives(group_);
    for (std::uint32_t step = 0; step + 1 < group_.size(); ++step) {
      receives.begin(left_, tags::sums, chunk_behind(step));
    }
    for (std::uint32_t step = 0; step + 2 < group_.size(); ++step) {
      receives.finish_next(
          [&](std::span<float> segment) { gathering_.begin(right_, tags::sums, segment); });
    }
    receives.finish_next();
  }

  Group& group_;
  std::span<float> values_;
  float factor_;
  Rank left_;
  Rank right_;
  Sends reducing_;
  Sends gathering_;
};

class RingReducer final : public Reducer {
 public:
  explicit RingReducer(Group& group) : group_(group) {}

  void reduce(const Contribution& mine) override {
    if (group_.size() > 1) {
      RingPass(group_, mine.values.floats(), mine.factor).run();
    } else {
      scale(mine.values.floats(), mine.factor);
    }
  }

 private:
  Group& group_;
};

/// 2 (P − 1) α + 2 (P − 1)/P · n β + (P − 1)/P · n γ, of n bytes. No reducer moves fewer bytes, and
/// none has fewer peers; the latencies grow with P.
std::optional<double> seconds_of_ring(const CostModel& model, double bytes) {
  const Link link = model.step([&](Rank rank) { return Rank{(rank.value + 1) % model.size()}; });
  const double steps = model.size() - 1;
  const double chunk = bytes / model.size();
  return steps * (2 * link.seconds(chunk) + model.adding(chunk));
}

}  // namespace

const ReducerSpec& ring_reducer() {
  static const ReducerSpec spec{
      .name = "ring",
      .seconds = seconds_of_ring,
      .make = [](Group& group, const ReducerContext&) -> std::unique_ptr<Reducer> {
        return std::make_unique<RingReducer>(group);
      }};
  return spec;
}

}  // namespace syncopate
