#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cluster/pace_line.hpp"
#include "collective/group.hpp"
#include "scheme/averaging.hpp"
#include "scheme/local_progress.hpp"
#include "scheme/push_weight.hpp"
#include "scheme/round_book.hpp"
#include "scheme/scheme.hpp"
#include "scheme/shared_model.hpp"
#include "server/server_client.hpp"
#include "server/update_rule.hpp"

namespace syncopate {

/// When a round of nbssgd closes for a worker that has contributed to it.
enum class Commit {
  barrier,  ///< when the sum has come, for which it waits
  overlap,  ///< likewise, but it computes on meanwhile
  racy,     ///< at once: the contribution is added to shared memory, or applied by a server
};

struct SchemeOptions {
  std::string name;
  Weights weights = Weights::samples;
  double data_share = 1;                       ///< this worker's part over all training samples
  Algorithm algorithm = Algorithm::automatic;  ///< where workers add up without a server
  Compression compression{};                   ///< likewise, of gradients and of rounds' deltas
  bool compress_remote = false;                ///< only between hosts
  double momentum = 0;                         ///< of the replica's optimizer; 0 where it has none
  Round done{};         ///< rounds that came before, in a run that is resumed
  PushWeight weight{};  ///< of gradients that are not averaged by the workers themselves
  std::uint32_t push_every = 1;
  std::uint32_t fetch_every = 1;
  std::uint32_t local_steps = 1;
  RuleSpec outer{.name = "sgd", .momentum = 0};  ///< the optimizer over rounds of local steps
  double outer_rate = 1;
  OptimizerState outer_state{};           ///< in a run that is resumed
  LocalProgress::Options local{};         ///< of the replicas' optimizer, in rounds of local steps
  bool control_variates = false;          ///< correct the drift of local steps
  bool overlap = false;                   ///< trains on while the sum of a round travels
  BucketSums::Options buckets{};          ///< in which gradients of ssgd are added
  FirstPace first_pace{};                 ///< where workers are paced
  std::uint32_t batch_size = 0;           ///< of this worker
  std::vector<std::uint32_t> balanced{};  ///< batch sizes to begin with, where they follow speeds
  std::uint32_t least_step = 1;           ///< samples
  /// Of all workers, from now on.
  std::uint64_t samples_to_do = std::numeric_limits<std::uint64_t>::max();
  BatchCut batch{};                              ///< this worker's, of nbssgd
  SignalRule signal = SignalRule::contribution;  ///< likewise
  Commit commit = Commit::overlap;
  std::uint64_t samples_done = 0;  ///< by all workers, in a run that is resumed
  /// Of the replica's optimizer, after so many samples of the job.
  std::function<double(std::uint64_t samples)> learning_rate{};
};

/// What a scheme meets in. What it does not need may be null.
struct Surroundings {
  Group& workers;
  ServerClient* server = nullptr;
  Reply start{};  ///< what the server said when this worker began
  SharedModel* shared = nullptr;
  PaceLine* pacer = nullptr;
  Replica* replica = nullptr;  ///< this worker's, before its first step
};

/// Errors: ConfigError, for an unknown name, or `local` with more than one worker.
std::unique_ptr<Scheme> make_scheme(const Surroundings& where, const SchemeOptions& options);

}  // namespace syncopate
