// Goal:   a shard stays consistent when workers die: a push enters whole or not at all, and a
//         worker that dies in the middle of a push or a pull delays no other; any number of shards
//         of any sizes works.
// Method: servers and clients on simulated nodes, with slow links so that a death falls in the
//         middle of a transfer; gradients of ones, so that each parameter shows the number of its
//         updates.

#include "server/parameter_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "optim/rule_state.hpp"
#include "server/server_client.hpp"
#include "sim/simulation.hpp"
#include "transport/shared_memory.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using namespace std::chrono_literals;

struct Cluster {
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::size_t values = 10;
  ConsistencyOptions consistency{};
  sim::NetworkProfile network{};
  bool shared_memory = false;
  std::optional<DelayCompensation::Options> compensation{};
  std::string compress = "none";
  bool compress_remote = false;
  bool takes_model = false;  ///< each worker takes the model at 10 s
};

/// A run of servers, which are the nodes 0 to S − 1, and workers, which follow them.
class ServerRun {
 public:
  using Body = std::function<void(World&, ServerClient&, Rank)>;

  ServerRun(const Cluster& cluster, Body body)
      : cluster_(cluster),
        body_(std::move(body)),
        simulation_(
            {.seed = 1, .network = cluster.network, .shared_memory = cluster.shared_memory}),
        versions_(cluster.servers) {
    for (std::uint32_t shard = 0; shard < cluster.servers; ++shard) {
      simulation_.add_node("server", [this, shard](World& world) { serve(world, shard); });
    }
    for (std::uint32_t rank = 0; rank < cluster.workers; ++rank) {
      simulation_.add_node("worker", [this, rank](World& world) { work(world, Rank{rank}); });
    }
  }

  sim::Simulation& simulation() { return simulation_; }
  NodeId worker(std::uint32_t rank) const { return NodeId{cluster_.servers + rank}; }
  void run() { simulation_.run(); }

  /// Returns the parameters of all shards at the end.
  const std::vector<float>& params() const { return params_; }
  const std::vector<std::uint64_t>& versions() const { return versions_; }
  /// Returns the servers' reports about rejected workers, "node 1: …".
  const std::vector<std::string>& rejections() const { return rejections_; }
  /// Returns the parameters that workers took at the end.
  const std::vector<std::vector<float>>& taken() const { return taken_; }

 private:
  std::vector<NodeId> nodes(std::uint32_t first, std::uint32_t count) const {
    std::vector<NodeId> found;
    for (std::uint32_t node = first; node < first + count; ++node) {
      found.push_back(NodeId{node});
    }
    return found;
  }

  void meet(World& world) const {
    for (const NodeId node : nodes(0, cluster_.servers + cluster_.workers)) {
      if (node != world.transport().self()) {
        world.transport().introduce(node, sim::address_of(node));
      }
    }
  }

  void serve(World& world, std::uint32_t shard) {
    meet(world);
    const ValueRange range = range_of_shard(cluster_.values, shard, cluster_.servers);
    ShardStore store({.params = range.count,
                      .workers = cluster_.workers,
                      .rule = {.name = "sgd"},
                      .learning_rate = [](std::uint64_t) { return 1.0; },
                      .compensation = cluster_.compensation});
    ConsistencyOptions options = cluster_.consistency;
    options.first_shard = shard == 0;
    ParameterServer* sender = nullptr;
    options.notify_shards = [&](std::uint64_t step, const std::vector<Rank>& workers) {
      for (std::uint32_t other = 1; other < cluster_.servers; ++other) {
        sender->send(other, {.kind = Request::Kind::verdict, .step = step, .ranks = workers});
      }
    };
    const auto consistency = make_consistency(store, options);
    ParameterServer server(world, store, *consistency,
                           {.workers = nodes(cluster_.servers, cluster_.workers),
                            .servers = nodes(0, cluster_.servers),
                            .compression = Compression::parse(cluster_.compress)});
    sender = &server;
    while (!server.all_gone()) {
      if (const auto rejected = server.serve(world.now() + 10ms).rejected) {
        rejections_.push_back(fmt::format("node {}: {}", rejected->worker.value, rejected->reason));
      }
    }
    params_.resize(cluster_.values);
    std::copy(store.params().begin(), store.params().end(),
              params_.begin() + static_cast<std::ptrdiff_t>(range.first));
    versions_[shard] = store.version();
    world.transport().close(world.now() + 1min);
  }

  void work(World& world, Rank rank) {
    meet(world);
    ServerClient client(world, {.servers = nodes(0, cluster_.servers),
                                .compression = Compression::parse(cluster_.compress),
                                .compress_remote = cluster_.compress_remote,
                                .takes_model = cluster_.takes_model});
    std::vector<float> params(cluster_.values);
    if (rank == Rank{0}) {
      client.upload(params, {});
    }
    client.start(params, {});
    body_(world, client, rank);
    client.leave();
    if (cluster_.takes_model) {
      world.sleep_until(TimePoint(10s));
      client.take_model(params, {});
      taken_.push_back(params);
    }
    world.transport().close(world.now() + 1min);
  }

  Cluster cluster_;
  Body body_;
  sim::Simulation simulation_;
  std::vector<float> params_;
  std::vector<std::uint64_t> versions_;
  std::vector<std::string> rejections_;
  std::vector<std::vector<float>> taken_;
};

/// Makes `steps` exchanges of a gradient of ones, each after `pause`.
void exchange(World& world, ServerClient& client, std::uint64_t steps, Duration pause,
              std::size_t values) {
  const std::vector<float> ones(values, 1.0F);
  std::vector<float> params(values);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    world.sleep_for(pause);
    client.work({.push = ones, .pull = params, .facts = {.step = step, .samples = 1}});
    // A pull returns a consistent model: an update is in all of its values or in none.
    EXPECT_THAT(params, Each(params[0]));
  }
}

TEST(ParameterServer, AppliesEveryPushOfEveryWorkerWhole) {
  const Cluster cluster{.workers = 5, .values = 1000};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    exchange(world, client, 10, (1 + rank.value) * 7ms, cluster.values);
  });
  run.run();
  EXPECT_THAT(run.params(), Each(-50.0F));
  EXPECT_THAT(run.versions(), Each(50U));
}

TEST(ParameterServer, WorkersTakeTheModelOfAllAfterTheyHaveLeft) {
  const Cluster cluster{
      .workers = 3, .servers = 2, .values = 1001, .compress = "int8", .takes_model = true};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    exchange(world, client, 10 * rank.value, 7ms, cluster.values);  // the first takes no step
  });
  run.run();
  ASSERT_THAT(run.taken(), SizeIs(3));
  EXPECT_THAT(run.taken(), Each(run.params()));
}

TEST(ParameterServer, AWorkerThatDiesBeforeItTakesTheModelIsNotWaitedFor) {
  const Cluster cluster{.workers = 2, .takes_model = true};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank) {
    exchange(world, client, 10, 7ms, cluster.values);
  });
  run.simulation().at(TimePoint(5s), [&] { run.simulation().kill(run.worker(1)); });
  run.run();
  ASSERT_THAT(run.taken(), SizeIs(1));
  EXPECT_THAT(run.taken()[0], Each(-20.0F));
}

TEST(ParameterServer, TakesCompressedPushesAndAnswersAlike) {
  // bfloat16 represents small whole numbers exactly.
  const Cluster cluster{.workers = 3, .servers = 2, .values = 70'001, .compress = "bf16"};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    const std::uint64_t before = world.transport().traffic().bytes_sent;
    exchange(world, client, 10, (1 + rank.value) * 7ms, cluster.values);
    const std::uint64_t sent = world.transport().traffic().bytes_sent - before;
    EXPECT_NEAR(static_cast<double>(sent), 10 * 2.0 * 70'001, 5000);
    EXPECT_NEAR(client.compression().ratio(), 2, 0.01);
  });
  run.run();
  EXPECT_THAT(run.params(), Each(-30.0F));
}

TEST(ParameterServer, WhatAPullLeavesOutComesWithLaterOnes) {
  // A push of 1000 values enters whole, a tenth at a time, and comes back in the same way.
  const Cluster cluster{.workers = 1, .servers = 1, .values = 1000, .compress = "topk:0.1"};
  ServerRun run(cluster, [&](World&, ServerClient& client, Rank) {
    std::vector<float> gradient(1000, 2.0F);
    std::vector<float> params(1000);
    for (std::uint64_t step = 1; step <= 30; ++step) {
      client.work({.push = gradient, .pull = params, .facts = {.step = step, .samples = 1}});
      std::fill(gradient.begin(), gradient.end(), 0.0F);
    }
    EXPECT_THAT(params, Each(-2.0F));
  });
  run.run();
  EXPECT_THAT(run.params(), Each(-2.0F));
}

TEST(ParameterServer, GoesOnWithoutAWorkerWhosePushIsDamaged) {
  const Cluster cluster{.workers = 2, .values = 100, .compress = "int8"};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    if (rank == Rank{0}) {
      exchange(world, client, 10, 1s, cluster.values);
      return;
    }
    const std::vector<std::byte> zeros(16 + 4 + 100);  // length of a frame, but no header
    send(world.transport(), NodeId{0}, tags::server_push, zeros, world.now() + 1s);
    const Request request{.kind = Request::Kind::work, .push = true, .step = 1, .samples = 1};
    world.transport().post(NodeId{0}, tags::server_request, encode(request));
    world.sleep_for(1s);
  });
  run.run();
  EXPECT_THAT(run.rejections(), ElementsAre(HasSubstr("node 2: expected a frame of 100 values")));
  EXPECT_THAT(run.versions(), Each(10U)) << "of the other worker";
}

TEST(ParameterServer, GoesOnWithoutAWorkerWhoseRequestIsNoRequest) {
  const std::vector<std::pair<std::vector<std::byte>, std::string>> requests{
      {std::vector<std::byte>(2), "node 2: a server's request of 2 bytes"},
      {encode(Request{.kind = Request::Kind::finish}),
       "node 2: worker 1 sent a server a request that only servers send"},
      {encode(Request{.kind = Request::Kind::model}),
       "node 2: worker 1 asked a server for the model before it had left"},
      {encode(Request{.kind = Request::Kind::work, .push = true, .samples = ~std::uint64_t{0}}),
       "node 2: a request with 18446744073709551615 samples"}};
  for (const auto& each : requests) {
    const std::vector<std::byte>& request = each.first;
    const std::string& reason = each.second;
    ServerRun run({}, [&](World& world, ServerClient& client, Rank rank) {
      if (rank == Rank{1}) {
        world.transport().post(NodeId{0}, tags::server_request, request);
        world.transport().post(NodeId{0}, tags::server_request, request);
        world.sleep_for(1s);
      } else {
        exchange(world, client, 10, 1s, 10);
      }
    });
    run.run();
    EXPECT_THAT(run.rejections(), ElementsAre(HasSubstr(reason)));
    EXPECT_THAT(run.params(), Each(-10.0F));
  }
}

TEST(ParameterServer, DropsTheRequestsOfNodesThatAreNotInTheJob) {
  ServerRun run(
      {}, [&](World& world, ServerClient& client, Rank) { exchange(world, client, 10, 1s, 10); });
  run.simulation().add_node("outsider", [](World& world) {
    world.transport().introduce(NodeId{0}, sim::address_of(NodeId{0}));
    world.sleep_for(3s);
    world.transport().post(NodeId{0}, tags::server_request, std::vector<std::byte>(2));
    for (const auto kind : {Request::Kind::upload, Request::Kind::work, Request::Kind::leave,
                            Request::Kind::finish, Request::Kind::collect}) {
      world.transport().post(NodeId{0}, tags::server_request, encode(Request{.kind = kind}));
    }
    world.transport().close(world.now() + 1min);
  });
  run.run();
  EXPECT_THAT(run.rejections(), testing::IsEmpty());
  EXPECT_THAT(run.params(), Each(-20.0F));
}

/// Makes ten exchanges of a gradient of ones from shared memory; all but the first pass it there.
void exchange_in_shared_memory(World& world, ServerClient& client, std::size_t values) {
  const auto gradient = make_values(world.transport().shared_memory(), values);
  const auto pulled = make_values(world.transport().shared_memory(), values);
  const std::span<float> ones(gradient.get(), values);
  const std::span<float> params(pulled.get(), values);
  std::fill(ones.begin(), ones.end(), 1.0F);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const std::uint64_t before = world.transport().traffic().bytes_sent;
    client.work({.push = ones, .pull = params, .facts = {.step = step, .samples = 1}});
    EXPECT_THAT(params, Each(params[0]));
    if (step > 1) {
      EXPECT_LT(world.transport().traffic().bytes_sent - before, values * sizeof(float));
    }
  }
}

TEST(ParameterServer, ReadsAndWritesTheMemoryOfWorkersOfItsHost) {
  Cluster cluster{.workers = 3, .servers = 2, .values = 1001, .shared_memory = true};
  for (const bool keeps_answers : {false, true}) {
    if (keeps_answers) {
      cluster.compensation = DelayCompensation::Options{.lambda = 0};
    }
    ServerRun run(cluster, [&](World& world, ServerClient& client, Rank) {
      exchange_in_shared_memory(world, client, cluster.values);
    });
    run.run();
    EXPECT_THAT(run.params(), Each(-30.0F));
    EXPECT_THAT(run.versions(), Each(30U));
  }
}

TEST(ParameterServer, HandsOverMemoryWholeWhereOnlyLinksCompress) {
  Cluster cluster{.workers = 3,
                  .servers = 2,
                  .values = 1001,
                  .shared_memory = true,
                  .compress = "onebit",
                  .compress_remote = true};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank) {
    exchange_in_shared_memory(world, client, cluster.values);
    EXPECT_EQ(client.compression().values, 0U);
  });
  run.run();
  EXPECT_THAT(run.params(), Each(-30.0F));
}

TEST(ParameterServer, SumsInTheMemoryOfWorkersOfItsHost) {
  const Cluster cluster{.workers = 3,
                        .values = 1001,
                        .consistency = {.kind = ConsistencyOptions::Kind::reduce},
                        .shared_memory = true};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    const auto memory = make_values(world.transport().shared_memory(), cluster.values);
    const std::span<float> values(memory.get(), cluster.values);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      std::fill(values.begin(), values.end(), static_cast<float>(rank.value + step));
      client.work({.push = values, .pull = values, .facts = {.step = step, .samples = 1}});
      EXPECT_THAT(values, Each(static_cast<float>(3 * step + 3)));
    }
  });
  run.run();
}

TEST(ParameterServer, ShardsMayBeUnequalEmptyAndLarge) {
  struct Sizes {
    std::size_t values;
    std::uint32_t servers;
  };
  for (const Sizes sizes : {Sizes{1, 1}, Sizes{1, 3}, Sizes{7, 3}, Sizes{1'000'003, 4}}) {
    const Cluster cluster{.workers = 2, .servers = sizes.servers, .values = sizes.values};
    ServerRun run(cluster, [&](World&, ServerClient& client, Rank) {
      const std::vector<float> ones(sizes.values, 1.0F);
      std::vector<float> params(sizes.values);
      client.work({.push = ones, .pull = params, .facts = {.step = 1, .samples = 1}});
    });
    run.run();
    EXPECT_THAT(run.params(), Each(-2.0F)) << sizes.values << " values, " << sizes.servers;
  }
}

/// Returns a network on which a push or a pull of 1000 values takes 40 ms.
sim::NetworkProfile slow_network() {
  sim::NetworkProfile network;
  network.link.bandwidth = 1e5;
  return network;
}

TEST(ParameterServer, AWorkerThatDiesInAPushLeavesNothingOfIt) {
  const Cluster cluster{.workers = 2, .values = 1000, .network = slow_network()};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    if (rank == Rank{0}) {
      exchange(world, client, 10, 100ms, cluster.values);
    } else {
      world.sleep_until(TimePoint(1s));
      exchange(world, client, 1, 0ms, cluster.values);
    }
  });
  run.simulation().at(TimePoint(1s + 20ms), [&] { run.simulation().kill(run.worker(1)); });
  run.run();
  EXPECT_THAT(run.params(), Each(-10.0F));
}

TEST(ParameterServer, AWorkerThatDiesInAPullLeavesItsPushWhole) {
  const Cluster cluster{.workers = 2, .values = 1000, .network = slow_network()};
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    if (rank == Rank{0}) {
      exchange(world, client, 10, 500ms, cluster.values);
    } else {
      world.sleep_until(TimePoint(1s + 400ms));
      exchange(world, client, 1, 0ms, cluster.values);
    }
  });
  // The worker's push takes 40 ms, its pull the next 40 ms.
  run.simulation().at(TimePoint(1s + 460ms), [&] { run.simulation().kill(run.worker(1)); });
  run.run();
  EXPECT_THAT(run.params(), Each(-11.0F));
}

TEST(ParameterServer, AWorkerThatRestsHoldsNobodyUpUntilItComesBack) {
  using Kind = ConsistencyOptions::Kind;
  for (const Kind kind : {Kind::bounded, Kind::backup}) {
    const Cluster cluster{.workers = 2, .servers = 2, .consistency = {.kind = kind, .slack = 0}};
    std::vector<Duration> ends(2);
    ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
      if (rank == Rank{1}) {
        client.rest();
        world.sleep_until(TimePoint(1h));
      }
      exchange(world, client, 20, 10ms, cluster.values);
      ends[rank.value] = world.now().time_since_epoch();
      client.rest();
      world.sleep_until(TimePoint(2h));
      exchange(world, client, 1, 0ms, cluster.values);  // both are back
    });
    run.run();
    EXPECT_LT(ends[0], 1s);
    EXPECT_GT(ends[1], 1h);
    EXPECT_LT(ends[1], 1h + 1s);
    EXPECT_THAT(run.rejections(), testing::IsEmpty());
  }
}

TEST(ParameterServer, ADeathReleasesThoseWhoWaitedAtTheBound) {
  using Kind = ConsistencyOptions::Kind;
  for (const Kind kind : {Kind::bounded, Kind::backup}) {
    const Cluster cluster{
        .workers = 3, .servers = 2, .consistency = {.kind = kind, .slack = 1, .backup_workers = 0}};
    std::vector<Duration> ends(3);
    ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
      if (rank == Rank{2}) {
        world.sleep_until(TimePoint(1h));
      }
      exchange(world, client, 20, 10ms, cluster.values);
      ends[rank.value] = world.now().time_since_epoch();
    });
    run.simulation().at(TimePoint(5s), [&] { run.simulation().kill(run.worker(2)); });
    run.run();
    EXPECT_GT(ends[0], 5s);
    EXPECT_LT(ends[0], 6s);
    EXPECT_LT(ends[1], 6s);
  }
}

TEST(ParameterServer, BackupGradientsAreWholeOrLeftOutOnEveryShard) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Cluster cluster{
      .workers = 5,
      .servers = 3,
      .values = 30,
      .consistency = {.kind = ConsistencyOptions::Kind::backup, .backup_workers = 2}};
  std::uint64_t dropped = 0;
  ServerRun run(cluster, [&](World& world, ServerClient& client, Rank rank) {
    Random random = Random(seed).fork("pauses", rank.value);
    const std::vector<float> ones(cluster.values, 1.0F);
    std::vector<float> params(cluster.values);
    for (std::uint64_t step = 1; step <= 40; ++step) {
      world.sleep_for(from_seconds(0.001 * random.uniform()));
      const auto result =
          client.work({.push = ones, .pull = params, .facts = {.step = step, .samples = 1}});
      dropped += result.reply.dropped ? 1 : 0;
    }
  });
  run.run();
  // Each step is the mean of gradients of ones, on every shard the same number of steps.
  EXPECT_THAT(run.versions(), Each(run.versions()[0]));
  EXPECT_THAT(run.params(), Each(-static_cast<float>(run.versions()[0])));
  EXPECT_GT(dropped, 0U);
}

TEST(ParameterServer, AStepThatIsInAlreadyIsNotAppliedAgain) {
  const Cluster cluster{.workers = 1};
  ServerRun run(cluster, [&](World&, ServerClient& client, Rank) {
    const std::vector<float> ones(cluster.values, 1.0F);
    std::vector<float> params(cluster.values);
    for (const std::uint64_t step : {1, 2, 2, 3}) {
      client.work({.push = ones, .pull = params, .facts = {.step = step, .samples = 1}});
    }
    EXPECT_THAT(params, Each(-3.0F));
  });
  run.run();
  EXPECT_THAT(run.params(), Each(-3.0F));
}

}  // namespace
}  // namespace syncopate
