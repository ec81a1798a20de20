// Runs the contract suites on the simulator.

#include "sim/simulation.hpp"
#include "tests/contract/contract_cluster.hpp"

namespace syncopate::contract {
namespace {

class SimCluster : public ContractCluster {
 public:
  void run(std::size_t nodes, Introductions introductions, const Body& body) override {
    for (std::size_t node = 0; node < nodes; ++node) {
      simulation_.add_node("node", [=](World& world) {
        introduce(world.transport(), nodes, introductions);
        body(world);
        world.transport().close(world.now() + std::chrono::minutes(1));
      });
    }
    try {
      simulation_.run();
    } catch (const sim::NodeFailed& failure) {
      std::rethrow_exception(failure.cause());
    }
  }

  void kill(NodeId node) override { simulation_.kill(node); }

 private:
  static void introduce(Transport& transport, std::size_t nodes, Introductions introductions) {
    const std::size_t known = introductions == Introductions::everyone ? nodes : 1;
    for (std::uint32_t peer = 0; peer < known; ++peer) {
      if (NodeId{peer} != transport.self()) {
        transport.introduce(NodeId{peer}, sim::address_of(NodeId{peer}));
      }
    }
  }

  sim::Simulation simulation_{{}};
};

std::unique_ptr<ContractCluster> make_sim_cluster() {
  return std::make_unique<SimCluster>();
}

INSTANTIATE_TEST_SUITE_P(Sim, TransportContract, testing::Values(make_sim_cluster));
INSTANTIATE_TEST_SUITE_P(Sim, WorldContract, testing::Values(make_sim_cluster));

}  // namespace
}  // namespace syncopate::contract
