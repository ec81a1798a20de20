#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "data/dataset.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// A job that a program starts.
struct JobSpec {
  std::string scheme = "ssgd";
  std::uint32_t workers = 1;
  /// Workers that are threads of this process; empty: all. Others join by `Job::join`.
  std::optional<std::uint32_t> local_workers = {};
  /// Options of `syncopate train`, by their names: {"epochs", "3"}, {"batch-size", "32"}.
  /// The job sets `learning-rate` in the program's optimizer, whose own rate has no effect.
  std::map<std::string, std::string> options = {};
};

using MakeReplica = std::function<std::unique_ptr<Replica>()>;

/// The model and the data of a program's job, the same in every process of the job.
struct ModelAndData {
  std::string name = "module";  ///< for the run folder and messages
  MakeReplica make_replica;     ///< called once for each member
  Dataset dataset;              ///< of the program, or from `load_dataset`
};

/// The result of a job.
struct JobResult {
  std::string summary;  ///< `summary.json`; empty where the job was joined
  std::optional<double>
      accuracy;  ///< of the last test; empty where the job was joined or never tested
  /// The parameters of each worker of this process, in the order of ranks.
  std::vector<std::vector<float>> params;
};

/// A training job inside a program: the same coordinator, schemes and run folder as those of
/// `syncopate train`, without its processes. It forks nothing, installs no signal handler and never
/// ends the process; it leaves libtorch's count of threads alone.
///
/// Threads: the job runs on threads of its own; `stop` may be called from any thread, all else from
///          one. Not from a signal handler.
/// Errors:  `start` and `join` throw ConfigError and DataError for a spec, a model or data that do
///          not fit; `wait` throws the error that ended the job. All errors derive from
///          `syncopate::Error`.
class Job {
 public:
  /// Makes the run folder, and starts coordinator, evaluator, servers and local workers.
  static Job start(const JobSpec& spec, ModelAndData what);

  /// Joins a job that another process has started, as one of its workers. `token` is that of
  /// `Job::token`, or the secret of `syncopate coordinator`.
  /// The worker's log goes to a new folder in `runs`.
  static Job join(const std::string& address, const std::string& token, ModelAndData what);

  /// A job that nobody has waited for ends first: one that was started as by `stop`, one that was
  /// joined by leaving it.
  ~Job();
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;

  /// Where other processes join, and the secret that they need.
  const std::string& address() const;
  const std::string& token() const;

  /// Asks a job that was started to end after the current round.
  void stop();

  /// Blocks until the job has ended. Call it once.
  JobResult wait();

  class Member;

 private:
  explicit Job(std::unique_ptr<Member> member);

  std::unique_ptr<Member> member_;
};

}  // namespace syncopate
