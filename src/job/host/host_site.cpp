#include "job/host/host_site.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/cores.hpp"
#include "base/errors.hpp"
#include "base/machine.hpp"
#include "job/launch/environment.hpp"
#include "kernels/thread_pool.hpp"
#include "scheme/shared_model.hpp"
#include "spec/config_file.hpp"

namespace syncopate {
namespace {

constexpr int evaluator_niceness = 19;

/// Returns the CPU seconds that this process needs for one mini-batch: the median of a few, after
/// one to warm up. Computes only gradients, so the parameters do not change. Measures CPU time
/// instead of wall time because other workers measure at the same moment.
double measure_step_cost(Replica& replica, const Dataset& dataset,
                         std::span<const std::uint32_t> mini_batch) {
  Batch batch;
  gather(dataset, dataset.train, mini_batch, batch);
  replica.backward(batch);
  std::array<double, 3> costs{};
  for (double& cost : costs) {
    const double start = cpu_seconds();
    replica.backward(batch);
    cost = cpu_seconds() - start;
  }
  std::sort(costs.begin(), costs.end());
  return costs[costs.size() / 2];
}

}  // namespace

HostSite::HostSite(const TrainConfig& config, Dataset dataset,
                   std::optional<std::filesystem::path> resume_from)
    : plan_(config),
      folder_(config.run_dir),
      dataset_(std::move(dataset)),
      resume_from_(std::move(resume_from)) {}

std::uint32_t HostSite::cores() const {
  return available_cores();
}

std::uint32_t HostSite::server_threads() const {
  return default_thread_count();
}

wire::Join HostSite::introduction(Role role, Rank index, Replica& replica) const {
  const std::string real = device(role, index);
  wire::Join join = join_message(role, index);
  join.set_host(host_name());
  join.set_pid(process_id());
  join.set_device(role == Role::worker ? plan_.device_name(index, real) : real);
  join.set_agreement(plan_.agreement(replica.view(ReplicaVector::params).size()));
  join.set_machine(machine_identity());
  if (role == Role::worker && plan_.step_budget(index) > Duration::zero()) {
    join.set_step_budget(to_seconds(plan_.step_budget(index)));
    const auto part = plan_.partition(dataset_.train).part(index, Epoch{0});
    const std::size_t whole = std::min<std::size_t>(plan_.batch_sizes()[index.value], part.size());
    join.set_step_cost(measure_step_cost(replica, dataset_, std::span(part).first(whole)));
  }
  return join;
}

void HostSite::before_evaluating() const {
  ::setpriority(PRIO_PROCESS, 0, evaluator_niceness);  // only of this thread
}

wire::JobDescription HostSite::description() const {
  TrainConfig config = plan_.config();
  config.run_dir = std::filesystem::absolute(config.run_dir);
  wire::JobDescription description;
  description.set_config(to_toml(config));
  if (resume_from_) {
    description.set_checkpoint(std::filesystem::absolute(*resume_from_).string());
  }
  return description;
}

void HostSite::share_memory(std::uint64_t buffers) {
  if (uses_shared_model(config())) {
    shared_memory_ = InheritedMemory(SharedModel::bytes_for(
        {.params = parameters(), .buffers = buffers, .workers = config().workers}));
  }
}

InheritedMemory::InheritedMemory(std::size_t bytes) {
  void* const address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    throw DataError(fmt::format("there is no room for {} bytes of shared memory ({})", bytes,
                                std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(address), bytes};
}

InheritedMemory::~InheritedMemory() {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
  }
}

InheritedMemory::InheritedMemory(InheritedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

InheritedMemory& InheritedMemory::operator=(InheritedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace syncopate
