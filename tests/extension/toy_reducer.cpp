// A reducer as an extension adds it: this file, and its line in collective/reducers.inc. It takes
// float32 also in the memory of an accelerator, which for this one is the host's.

#include <vector>

#include "collective/basic_collectives.hpp"
#include "collective/reducer.hpp"

namespace syncopate {

const ReducerSpec& toy_reducer();

namespace {

/// Every rank gets the values of all, and adds them in the order of ranks, in float64.
class ToyReducer final : public Reducer {
 public:
  explicit ToyReducer(Group& group) : group_(group) {}

  void reduce(const Contribution& mine) override {
    auto* const values = static_cast<float*>(mine.values.data());
    std::vector<double> own;
    for (std::size_t i = 0; i < mine.values.size(); ++i) {
      own.push_back(mine.factor == 0 ? 0 : double{mine.factor} * double{values[i]});
    }
    std::vector<double> all(group_.size() * own.size());
    allgather(group_, std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < own.size(); ++i) {
      double sum = 0;
      for (std::size_t rank = 0; rank < group_.size(); ++rank) {
        sum += all[rank * own.size() + i];
      }
      values[i] = static_cast<float>(sum);
    }
  }

 private:
  Group& group_;
};

}  // namespace

const ReducerSpec& toy_reducer() {
  static const ReducerSpec spec{
      .name = "toy",
      .takes = [](const Values& values) { return values.type() == ValueType::float32; },
      .make = [](Group& group, const ReducerContext&) -> std::unique_ptr<Reducer> {
        return std::make_unique<ToyReducer>(group);
      }};
  return spec;
}

}  // namespace syncopate
