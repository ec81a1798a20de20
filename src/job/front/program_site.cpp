#include "job/front/program_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/text.hpp"
#include "device/cluster_file.hpp"
#include "job/launch/environment.hpp"
#include "spec/config_file.hpp"

namespace syncopate {
namespace {

TrainConfig renamed(TrainConfig config, const NetworkChoice& network, const std::string& data) {
  config.network = network;
  config.data = data;
  return config;
}

const Field& field_named(const std::string& name) {
  if (const Field* const field = find_field(name)) {
    return *field;
  }
  std::vector<std::string_view> names;
  for (const Field& field : train_fields()) {
    names.push_back(field.name);
  }
  throw ConfigError(fmt::format("a job has no option {}{}", name, suggestion(name, names)));
}

TrainConfig config_of(const JobSpec& spec) {
  TrainConfig config;
  set_from_option(field_named("scheme"), config, spec.scheme);
  config.workers = spec.workers;
  for (const auto& [name, text] : spec.options) {
    set_from_option(field_named(name), config, text);
  }
  return config;
}

void check_runs_in_program(const TrainConfig& config) {
  if (config.virtual_time) {
    throw ConfigError("a program's job runs in real time: virtual-time has no effect there");
  }
  if (config.weight_init != WeightInit::standard) {
    throw ConfigError(
        "a program draws the weights of its own network: weight-init has no effect there");
  }
  if (config.transport == TransportKind::mpi) {
    throw ConfigError("a program's job needs sockets: transport mpi is for `syncopate train`");
  }
  if (config.resize || config.precision != Precision::float32) {
    throw ConfigError(
        "a program's own module sets its image size and its precision: resize and precision have "
        "no effect there");
  }
}

}  // namespace

ProgramSite::ProgramSite(const TrainConfig& config, ModelAndData what,
                         std::optional<std::filesystem::path> resume_from)
    // Braces are evaluated from left to right: the name is read before `what` is moved.
    : ProgramSite{config, own_network(what.name), std::move(what), std::move(resume_from)} {}

ProgramSite::ProgramSite(const TrainConfig& config, std::shared_ptr<const OwnNetwork> own,
                         ModelAndData what, std::optional<std::filesystem::path> resume_from)
    : HostSite(renamed(config, &own->spec, what.dataset.name), std::move(what.dataset),
               std::move(resume_from)),
      make_replica_(std::move(what.make_replica)),
      own_(std::move(own)),
      network_(config.network),
      data_(config.data) {
  const auto replica = make_replica_();
  parameters_ = replica->view(ReplicaVector::params).size();
  share_memory(replica->view(ReplicaVector::buffers).size());
}

std::shared_ptr<const ProgramSite::OwnNetwork> ProgramSite::own_network(const std::string& name) {
  const auto own = std::make_shared<OwnNetwork>(OwnNetwork{.name = name, .spec = {.name = {}}});
  own->spec.name = own->name;
  return own;
}

std::unique_ptr<Replica> ProgramSite::make_replica(Role, Rank) const {
  return make_replica_();
}

wire::JobDescription ProgramSite::described() const {
  wire::JobDescription description = HostSite::description();
  TrainConfig config = renamed(this->config(), network_, data_);
  config.run_dir = std::filesystem::absolute(config.run_dir);
  description.set_config(to_toml(config));
  return description;
}

std::string ProgramSite::device(Role, Rank) const {
  return "the program's";
}

JobRequest request_of(const JobSpec& spec, const std::string& name) {
  TrainConfig config = config_of(spec);
  check_runs_in_program(config);
  ConfigFacts facts{
      .devices = {}, .usual_learning_rate = usual_learning_rate, .time = time_for_a_name()};
  if (!config.cluster.empty()) {
    const ClusterFile cluster = read_cluster_file(config.cluster);
    facts.devices = static_cast<std::uint32_t>(cluster.devices.size());
  }
  const bool named_run_dir = !config.run_dir.empty();
  if (!named_run_dir) {
    config.run_dir =
        std::filesystem::path("runs") / fmt::format("{}-{}-{}", facts.time, config.scheme, name);
  }
  return {.config = resolve_config(std::move(config), facts), .named_run_dir = named_run_dir};
}

}  // namespace syncopate
