#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "runtime/real_world.hpp"
#include "tests/contract/contract_cluster.hpp"
#include "transport/steady_time.hpp"
#include "transport/tcp/tcp_transport.hpp"

namespace syncopate::contract {

inline const std::string token = "the token of this job";

/// A deadline that only a hang reaches.
inline TimePoint far_away() {
  return steady_now() + std::chrono::minutes(2);
}

inline std::unique_ptr<TcpTransport> make_coordinator(
    const TcpTransport::Limits& limits = {}, bool shared_memory = true,
    tcp::Network network = tcp::Network::loopback) {
  return TcpTransport::listen(
      {.token = token, .shared_memory = shared_memory, .network = network, .limits = limits});
}

inline std::unique_ptr<TcpTransport> join_coordinator(
    const std::string& coordinator, const std::string& as_token = token, bool shared_memory = true,
    tcp::Network network = tcp::Network::loopback) {
  return TcpTransport::join({.coordinator = coordinator,
                             .token = as_token,
                             .timeout = std::chrono::milliseconds(60'000),
                             .shared_memory = shared_memory,
                             .network = network});
}

/// Nodes on threads of this process that talk through sockets, encrypted or not, or through shared
/// memory.
class TcpCluster : public ContractCluster {
 public:
  explicit TcpCluster(bool shared_memory, tcp::Network network = tcp::Network::loopback)
      : shared_memory_(shared_memory), network_(network) {}

  void run(std::size_t nodes, Introductions introductions, const Body& body) override {
    connect(nodes, introductions);
    std::vector<std::thread> threads;
    for (const auto& world : worlds_) {
      threads.emplace_back([this, &body, world = world.get()] { run_node(*world, body); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

  void kill(NodeId node) override {
    {
      const std::lock_guard lock(mutex_);
      killed_.at(node.value) = true;
    }
    World& world = *worlds_.at(node.value);
    world.cancel(std::make_exception_ptr(Cancelled("killed")));
    world.transport().close(world.now());
  }

 private:
  void connect(std::size_t nodes, Introductions introductions) {
    killed_.resize(nodes);
    worlds_.push_back(std::make_unique<RealWorld>(make_coordinator({}, shared_memory_, network_)));
    Transport& coordinator = worlds_.front()->transport();
    while (worlds_.size() < nodes) {
      worlds_.push_back(std::make_unique<RealWorld>(
          join_coordinator(coordinator.address(), token, shared_memory_, network_)));
    }
    if (introductions == Introductions::everyone) {
      for (const auto& one : worlds_) {
        for (const auto& other : worlds_) {
          one->transport().introduce(other->transport().self(), other->transport().address());
        }
      }
    }
  }

  void run_node(World& world, const Body& body) {
    try {
      body(world);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!killed_.at(world.transport().self().value) && !error_) {
        error_ = std::current_exception();
      }
    }
    world.transport().close(far_away());
  }

  const bool shared_memory_;
  const tcp::Network network_;
  std::vector<std::unique_ptr<RealWorld>> worlds_;
  std::mutex mutex_;
  std::vector<bool> killed_;
  std::exception_ptr error_;
};

}  // namespace syncopate::contract
