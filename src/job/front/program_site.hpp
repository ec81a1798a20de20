#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "job/front/job.hpp"
#include "job/host/host_site.hpp"
#include "job/launch/job_request.hpp"

namespace syncopate {

/// The site of a job that trains a program's own model on its own data.
class ProgramSite final : public HostSite {
 public:
  /// `config` names a built-in network and dataset, because a program's own have no name that
  /// another process could look up. The site replaces both names. Errors: ConfigError.
  ProgramSite(const TrainConfig& config, ModelAndData what,
              std::optional<std::filesystem::path> resume_from);

  std::unique_ptr<Replica> make_replica(Role role, Rank index) const override;

  /// The description for processes that join, with the names of the constructor's `config`.
  wire::JobDescription described() const;

 private:
  /// A network of the program, which no list of built-in networks contains.
  struct OwnNetwork {
    std::string name;
    NetworkSpec spec;
  };

  ProgramSite(const TrainConfig& config, std::shared_ptr<const OwnNetwork> own, ModelAndData what,
              std::optional<std::filesystem::path> resume_from);
  static std::shared_ptr<const OwnNetwork> own_network(const std::string& name);

  std::string device(Role role, Rank index) const override;
  std::uint64_t parameters() const override { return parameters_; }

  MakeReplica make_replica_;
  std::shared_ptr<const OwnNetwork> own_;  ///< the configuration points to it
  NetworkChoice network_;                  ///< as in the constructor's `config`
  std::string data_;                       ///< as in the constructor's `config`
  std::uint64_t parameters_ = 0;
};

/// The configuration for a spec, resolved and with a run folder that is not made yet.
/// Errors: ConfigError.
/// `name`: that of the model, for the run folder.
JobRequest request_of(const JobSpec& spec, const std::string& name);

}  // namespace syncopate
