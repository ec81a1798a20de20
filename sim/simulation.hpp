#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "runtime/world.hpp"
#include "sim/scheduler.hpp"
#include "sim/sim_network.hpp"
#include "sim/sim_node.hpp"
#include "sim/sim_transport.hpp"
#include "sim/trace.hpp"
#include "sim/transfer_times.hpp"

namespace syncopate::sim {

/// The body of a node ended with an error.
class NodeFailed : public Error {
 public:
  NodeFailed(NodeId node, const std::string& message, std::exception_ptr cause)
      : Error(message), node_(node), cause_(std::move(cause)) {}

  NodeId node() const { return node_; }
  std::exception_ptr cause() const { return cause_; }

 private:
  NodeId node_;
  std::exception_ptr cause_;
};

/// A cluster in virtual time, on one thread: each node runs the code that it would run on a machine
/// of its own, computation costs nothing, and messages, sleeps and faults take their time.
///
///     Simulation simulation({.seed = 7, .network = {.link = {1.25e9, 50us}}});
///     for (int i = 0; i < 4; ++i) simulation.add_node("worker", [](World& world) { ... });
///     simulation.at(TimePoint(3s), [&] { simulation.kill(NodeId{2}); });
///     simulation.run();
///
/// The same options and bodies give the same run, trace included, byte for byte, provided that the
/// bodies draw randomness from seeds and read no clock but their world's.
///
/// Thread: one, from construction to destruction.
class Simulation final : private EventTarget {
 public:
  struct Options {
    std::uint64_t seed = 1;  ///< of the network's jitter
    NetworkProfile network{};
    bool shared_memory = false;  ///< the nodes are on one host, as far as memory is concerned
    TraceSink trace{};           ///< empty: no trace
    Scheduler::Options scheduler{};
    TimePoint until = no_deadline;  ///< a run that is not over by then is an error
  };

  explicit Simulation(const Options& options);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Adds the next node, 0 first. It knows no other node. `body` starts at the current virtual
  /// time. When it returns, the node ends, and its unsent messages are lost unless it closed its
  /// transport.
  NodeId add_node(const std::string& name, std::function<void(World&)> body);

  /// Runs until every node has ended.
  ///
  /// Errors: NodeFailed, the first of `failures`, after all nodes have ended. InternalError, which
  ///         names every blocked task and its wait, when no node can continue, or when
  ///         `Options::until` has passed. Any error that an action of `at` throws.
  void run();

  /// Virtual time, from zero.
  TimePoint now() const { return scheduler_.now(); }
  /// The nodes whose bodies ended with an error, in that order.
  const std::vector<NodeFailed>& failures() const { return failures_; }

  // Faults. Called by actions, or by bodies.

  /// Calls `action` at `when`.
  void at(TimePoint when, std::function<void()> action);
  /// Ends a node as the death of its machine would: peers learn of it after the latency, messages
  /// that its network card had not sent are dropped, and its tasks unwind without further effect.
  void kill(NodeId node);
  /// Breaks the connection of two nodes: both find the other lost.
  void cut_link(NodeId one, NodeId other);
  /// Stops the main task of a node, while its other tasks continue: it still sends heartbeats. The
  /// main task runs again, to its end, once the node is cancelled or killed.
  void hang(NodeId node);
  /// Lets the main task of a hanging node continue.
  void go_on(NodeId node);
  /// Changes the link between two nodes, both ways, for messages that are sent from now on.
  void set_link(NodeId one, NodeId other, const LinkProfile& link);

 private:
  class Member;

  void fire(std::uint64_t action) override;
  void step();
  void run_body(Member& member);
  void fail(Member& member, const std::exception_ptr& error);
  void abandon();
  [[noreturn]] void report_stop(const std::string& what);
  Member& member(NodeId node);

  TimePoint until_;
  Trace trace_;
  Scheduler scheduler_;
  Network network_;
  std::shared_ptr<SimHost> host_;                 ///< null if nodes share no memory
  std::vector<std::unique_ptr<Member>> members_;  // by node
  std::size_t running_ = 0;                       // members that have not ended
  std::deque<std::function<void()>> actions_;
  std::vector<NodeFailed> failures_;
};

}  // namespace syncopate::sim
