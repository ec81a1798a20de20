#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "transport/steady_time.hpp"
#include "transport/tcp/tcp_transport.hpp"

/// Nodes for the tests of the real transport.
namespace syncopate::contract {

inline const std::string token = "the token of this job";

/// A deadline that only a hang reaches.
inline TimePoint far_away() {
  return steady_now() + std::chrono::minutes(2);
}

inline std::unique_ptr<TcpTransport> make_coordinator(const TcpTransport::Limits& limits = {},
                                                      bool shared_memory = true) {
  return TcpTransport::listen({.token = token, .shared_memory = shared_memory, .limits = limits});
}

inline std::unique_ptr<TcpTransport> join_coordinator(const std::string& coordinator,
                                                      const std::string& as_token = token,
                                                      bool shared_memory = true) {
  return TcpTransport::join({.coordinator = coordinator,
                             .token = as_token,
                             .timeout = std::chrono::milliseconds(60'000),
                             .shared_memory = shared_memory});
}

}  // namespace syncopate::contract
