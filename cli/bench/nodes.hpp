#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/processes.hpp"
#include "cli/launch/descriptor.hpp"
#include "cluster/world.hpp"
#include "collective/group.hpp"

namespace syncopate::cli {

/// One process of a benchmark that needs several: a node of a job without a coordinator.
struct Node {
  World& world;
  Group& all;  ///< every node, in the order of the processes
  Teller& teller;
};

/// Runs as many nodes as there are names, each introduced to all others over `transport`, one of
/// `bench_transports`. All come to the end of `body` before any closes. As `run_processes`.
int run_nodes(const BenchCommand& command, const std::vector<std::string>& names,
              const std::function<void(Node&)>& body);

}  // namespace syncopate::cli
