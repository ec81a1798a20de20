#pragma once

#include "runtime/world.hpp"
#include "sim/sim_node.hpp"
#include "sim/sim_transport.hpp"

namespace syncopate::sim {

/// The world of one simulated node: virtual time, and tasks on fibers.
class SimWorld final : public World {
 public:
  SimWorld(Node& node, SimTransport& transport) : node_(node), transport_(transport) {}

  TimePoint now() const override { return node_.now(); }
  Transport& transport() override { return transport_; }
  void sleep_until(TimePoint when) override;
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override;
  std::unique_ptr<Event> make_event() override;
  void cancel(std::exception_ptr why) noexcept override;

 private:
  Node& node_;
  SimTransport& transport_;
};

}  // namespace syncopate::sim
