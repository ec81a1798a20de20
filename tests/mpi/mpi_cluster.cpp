#include "tests/mpi/mpi_cluster.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/errors.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::contract {
namespace {

const std::string token = "the token of this job";

TimePoint far_away() {
  return steady_now() + std::chrono::minutes(4);
}

}  // namespace

void MpiCluster::run(std::size_t nodes, Introductions introductions, const Body& body) {
  connect(nodes);
  if (introductions == Introductions::everyone) {
    introduce_all();
  }
  meet();
  std::vector<std::thread> threads;
  for (const auto& [node, world] : worlds_) {
    threads.emplace_back([this, &body, &world = *world] { run_node(world, body); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  worlds_.clear();
  meet();
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void MpiCluster::kill(NodeId node) {
  {
    const std::lock_guard lock(mutex_);
    killed_.insert(node);
  }
  World& world = *worlds_.at(node.value);
  world.cancel(std::make_exception_ptr(Cancelled("killed")));
  world.transport().close(world.now());
}

/// The nodes join one after the other, since node 0 numbers them in the order in which they join.
/// The slots of a rank are numbered in the same order, so each node's address is known beforehand.
void MpiCluster::connect(std::size_t nodes) {
  mpi::Session& session = *home_.session;
  addresses_.emplace_back("mpi:0.0");
  if (is_here(0)) {
    worlds_[0] = std::make_unique<RealWorld>(
        session.listen({.token = token, .shared_memory = shared_memory_}));
  }
  meet();
  for (std::size_t node = 1; node < nodes; ++node) {
    addresses_.push_back(fmt::format("mpi:{}.{}", rank_of(node), ++home_.joined[rank_of(node)]));
    if (is_here(node)) {
      auto transport = session.join({.token = token, .shared_memory = shared_memory_});
      if (transport->self().value != node || transport->address() != addresses_.back()) {
        throw InternalError(fmt::format("expected node {} at {}, found node {} at {}", node,
                                        addresses_.back(), transport->self().value,
                                        transport->address()));
      }
      worlds_[node] = std::make_unique<RealWorld>(std::move(transport));
    }
    meet();
  }
}

void MpiCluster::introduce_all() {
  for (const auto& [node, world] : worlds_) {
    for (std::uint32_t peer = 0; peer < addresses_.size(); ++peer) {
      world->transport().introduce(NodeId{peer}, addresses_[peer]);
    }
  }
}

void MpiCluster::run_node(World& world, const Body& body) {
  try {
    body(world);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!killed_.contains(world.transport().self()) && !error_) {
      error_ = std::current_exception();
    }
  }
  world.transport().close(far_away());
}

std::uint32_t MpiCluster::rank_of(std::size_t node) const {
  return static_cast<std::uint32_t>(node % home_.session->size());
}

void MpiCluster::meet() {
  home_.session->barrier(far_away());
}

}  // namespace syncopate::contract
