#include "sim/simulation.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "sim/sim_world.hpp"

namespace syncopate::sim {
namespace {

std::string describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

/// A node and its parts.
class Simulation::Member {
 public:
  Member(NodeId id, const std::string& name, Simulation& simulation)
      : node(id, name, simulation.scheduler_),
        transport(node, simulation.network_, simulation.host_),
        world(node, transport) {}

  Node node;
  SimTransport transport;
  SimWorld world;
  std::function<void(World&)> body;
  bool ended = false;
};

Simulation::Simulation(const Options& options)
    : until_(options.until),
      trace_(options.trace),
      scheduler_(options.scheduler),
      network_(scheduler_, trace_, TransferTimes(options.network, options.seed)),
      host_(options.shared_memory ? std::make_shared<SimHost>() : nullptr) {}

Simulation::~Simulation() {
  abandon();
}

NodeId Simulation::add_node(const std::string& name, std::function<void(World&)> body) {
  const NodeId id{static_cast<std::uint32_t>(members_.size())};
  members_.push_back(std::make_unique<Member>(id, name, *this));
  Member& added = *members_.back();
  added.body = std::move(body);
  ++running_;
  trace_.note(now(), id, fmt::format("start {}", name));
  added.node.start("its body", [this, &added] { run_body(added); });
  return id;
}

void Simulation::run() {
  try {
    while (running_ > 0) {
      step();
    }
  } catch (...) {
    abandon();
    throw;
  }
  if (!failures_.empty()) {
    throw NodeFailed(failures_.front());
  }
}

void Simulation::at(TimePoint when, std::function<void()> action) {
  actions_.push_back(std::move(action));
  scheduler_.schedule(when, *this, actions_.size() - 1);
}

void Simulation::kill(NodeId node) {
  Member& victim = member(node);
  if (victim.ended || victim.node.dead()) {
    return;
  }
  trace_.note(now(), node, "killed");
  victim.node.die();
  victim.transport.shut(fmt::format("lost {}, which died", victim.node.title()));
}

void Simulation::hang(NodeId node) {
  member(node).node.hang();
}

void Simulation::go_on(NodeId node) {
  member(node).node.go_on();
}

void Simulation::cut_link(NodeId one, NodeId other) {
  trace_.note(now(), one, fmt::format("cut peer={}", other.value));
  network_.cut(one, other, fmt::format("lost node {}: the link is cut", one.value));
  network_.cut(other, one, fmt::format("lost node {}: the link is cut", other.value));
}

void Simulation::set_link(NodeId one, NodeId other, const LinkProfile& link) {
  trace_.note(now(), one,
              fmt::format("link peer={} bandwidth={} latency={}", other.value, link.bandwidth,
                          to_seconds(link.latency)));
  network_.set_link(one, other, link);
}

void Simulation::fire(std::uint64_t action) {
  std::exchange(actions_.at(action), nullptr)();
}

void Simulation::step() {
  const TimePoint next = scheduler_.next_step();
  if (next == no_deadline) {
    report_stop("every task waits for another one, for ever");
  }
  if (next > until_) {
    report_stop(fmt::format("the run is not over at {:.9f} s of virtual time",
                            to_seconds(until_.time_since_epoch())));
  }
  scheduler_.step();
}

/// The first node that failed is the likely reason why the others stopped.
void Simulation::report_stop(const std::string& what) {
  if (!failures_.empty()) {
    throw NodeFailed(failures_.front());
  }
  throw InternalError(what + scheduler_.blocked());
}

void Simulation::run_body(Member& member) {
  try {
    if (!member.node.dead()) {
      member.body(member.world);
    }
  } catch (const NodeDied&) {
    // The node was killed, so its body ends here.
  } catch (...) {
    fail(member, std::current_exception());
  }
  member.body = nullptr;
  trace_.note(now(), member.node.id(), "end");
  member.transport.shut(fmt::format("lost {}, which has ended", member.node.title()));
  member.ended = true;
  --running_;
}

void Simulation::fail(Member& member, const std::exception_ptr& error) {
  if (!member.node.dead()) {
    const std::string message = fmt::format("{} failed: {}", member.node.title(), describe(error));
    failures_.emplace_back(member.node.id(), message, error);
  }
}

/// Unwinds the tasks of every node that has not ended, so that nothing is left on their stacks.
void Simulation::abandon() {
  for (const auto& member : members_) {
    kill(member->node.id());
  }
  scheduler_.run_ready();
}

Simulation::Member& Simulation::member(NodeId node) {
  return *members_.at(node.value);
}

}  // namespace syncopate::sim
