#include "tests/support/program_coordinator.hpp"

#include "job/program/program_host.hpp"
#include "runtime/real_world.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate::test {

struct ProgramCoordinator::Parts {
  explicit Parts(std::uint32_t count)
      : programs(count), world(listen_over("shm", {.token = key, .control_only = true})) {
    address = world.transport().address();
  }

  std::uint32_t programs;
  std::string key = "a key of this test alone";
  RealWorld world;
  std::string address = {};
};

ProgramCoordinator::ProgramCoordinator(std::uint32_t programs)
    : parts_(std::make_unique<Parts>(programs)) {}

ProgramCoordinator::~ProgramCoordinator() = default;

const std::string& ProgramCoordinator::address() const {
  return parts_->address;
}

const std::string& ProgramCoordinator::key() const {
  return parts_->key;
}

std::string ProgramCoordinator::run() {
  std::string failure;
  try {
    ProgramHost(parts_->world, {.programs = parts_->programs, .key = parts_->key}).run();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  parts_->world.transport().close(parts_->world.now() + std::chrono::seconds(2));
  return failure;
}

}  // namespace syncopate::test
