#include "scheme/round_reduction.hpp"

#include <array>

namespace syncopate {
namespace {

class WholeReduction final : public RoundReduction {
 public:
  explicit WholeReduction(Allreduce& allreduce) : allreduce_(allreduce) {}

  Duration reduce(const WeighedValues& mine) override {
    const std::array<Allreduce::Weighted, 3> vectors{
        {{.values = mine.values.model,
          .weight = mine.of_model,
          .may_lose = true,
          .first = mine.values.first},
         {.values = mine.values.control, .weight = mine.weight},
         {.values = mine.values.buffers, .weight = mine.weight}}};
    return allreduce_.means(vectors, mine.total);
  }

  bool takes(const Values& values) const override { return allreduce_.takes(values); }
  std::string description() const override { return allreduce_.description(); }

 private:
  Allreduce& allreduce_;
};

class ServerReduction final : public RoundReduction {
 public:
  ServerReduction(ServerClient& server, Allreduce& allreduce)
      : server_(server), allreduce_(allreduce) {}

  /// Pushes and pulls through the same memory: the server replies only after it has received the
  /// whole push.
  Duration reduce(const WeighedValues& mine) override {
    const std::span<float> model = mine.values.model.floats();
    ServerClient::Work work{.push = model, .pull = model, .facts = mine.facts};
    work.facts.weight = static_cast<float>(mine.of_model / mine.total);
    server_.work(work);
    reduce_others(allreduce_, mine);
    return Duration::zero();
  }

  std::string description() const override { return "server"; }

 private:
  ServerClient& server_;
  Allreduce& allreduce_;
};

}  // namespace

void reduce_others(Allreduce& allreduce, const WeighedValues& mine) {
  if (mine.values.control.empty() && mine.values.buffers.empty()) {
    return;
  }
  const std::array<Allreduce::Weighted, 2> others{
      {{.values = mine.values.control, .weight = mine.weight},
       {.values = mine.values.buffers, .weight = mine.weight}}};
  allreduce.means(others, mine.total);
}

std::unique_ptr<RoundReduction> whole_reduction(Allreduce& allreduce) {
  return std::make_unique<WholeReduction>(allreduce);
}

std::unique_ptr<RoundReduction> reduction_by_server(ServerClient& server, Allreduce& allreduce) {
  return std::make_unique<ServerReduction>(server, allreduce);
}

}  // namespace syncopate
