// A worker of ssgd with compressed gradients. The suite `compress` starts one on each host:
//
//   compress_rank INDEX RANKS COORDINATOR OWN-ADDRESS NETWORK BATCH COMPRESS STEPS
//
// Rank 0 prints one JSON object: the seconds of each step, measured from the end of the previous
// step, and the bytes that it sent in all of them. Warm-up steps do not count.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "cli/bench/nodes.hpp"
#include "cli/bench/random_batch.hpp"
#include "scheme/ssgd.hpp"
#include "torch/factory.hpp"

namespace {

using namespace syncopate;

constexpr int warm_up_steps = 3;

struct Orders {
  cli::BenchEndpoint endpoint;
  std::uint32_t index;
  std::string network;
  std::uint32_t batch;
  Compression compression;
  int steps;
};

Orders read_orders(const std::vector<std::string>& words) {
  if (words.size() != 8) {
    throw ConfigError(
        "expected INDEX RANKS COORDINATOR OWN-ADDRESS NETWORK BATCH COMPRESS STEPS; see the head "
        "of "
        "bench/compress_rank.cpp");
  }
  return {.endpoint = {.transport = "tcp",
                       .token = "the token of this benchmark",
                       .coordinator = words[2],
                       .address = words[3],
                       .nodes = static_cast<std::uint32_t>(std::stoul(words[1]))},
          .index = static_cast<std::uint32_t>(std::stoul(words[0])),
          .network = words[4],
          .batch = static_cast<std::uint32_t>(std::stoul(words[5])),
          .compression = Compression::parse(words[6]),
          .steps = std::stoi(words[7])};
}

void take_step(Ssgd& ssgd, Replica& replica, const Batch& batch) {
  const auto samples = static_cast<std::uint32_t>(batch.samples());
  GradientSink* const sink = ssgd.before_backward(replica, samples);
  const PassResult pass = replica.backward(batch, sink);
  ssgd.after_backward(replica, {.samples = pass.samples, .loss_sum = pass.loss_sum});
}

void train(const Orders& orders, World& world, Group& group) {
  const Batch batch = cli::random_batch(orders.batch, 28, Random(1).fork("batch", orders.index));
  torch_backend::set_threads(1);
  const auto replica = torch_backend::make_replica(
      {.name = orders.network, .input = batch.shape, .classes = cli::random_batch_classes},
      {.optimizer = Optimizer::momentum, .learning_rate = 0.01}, "cpu");
  replica->initialise(1);
  Ssgd ssgd(group, {.averaging = {.compression = orders.compression,
                                  .buckets = BucketReducer::Options{}}});
  for (int step = 0; step < warm_up_steps; ++step) {
    take_step(ssgd, *replica, batch);
  }
  const std::uint64_t sent_before = world.transport().traffic().bytes_sent;
  std::vector<double> seconds;
  for (int step = 0; step < orders.steps; ++step) {
    const TimePoint begun = world.now();
    take_step(ssgd, *replica, batch);
    seconds.push_back(to_seconds(world.now() - begun));
  }
  const std::uint64_t sent = world.transport().traffic().bytes_sent - sent_before;
  ssgd.leave(*replica);
  if (orders.index == 0) {
    std::cout << nlohmann::ordered_json{{"seconds", seconds},
                                        {"bytes_sent", sent},
                                        {"aggregate", ssgd.aggregate()}}
                     .dump()
              << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Orders orders = read_orders({argv + 1, argv + argc});
    cli::take_part(orders.endpoint, orders.index,
                   [&](World& world, Group& group) { train(orders, world, group); });
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
