#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "collective/allreduce.hpp"
#include "collective/group.hpp"
#include "config/option_values.hpp"
#include "scheme/bucket_sums.hpp"
#include "scheme/meeting.hpp"
#include "scheme/recovery.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// How workers are weighted in a mean over them.
enum class Weights {
  samples,  ///< Σ n_i x_i / N: of gradients, the gradient of the union of the batches
  uniform,  ///< Σ x_i over those with samples, by their number: right only where all n_i are equal
  data,     ///< Σ p_i x_i over those with samples, p_i the worker's share of the training data
};

constexpr auto names_of(Weights) {
  return std::to_array<Named<Weights>>(
      {{"samples", Weights::samples}, {"uniform", Weights::uniform}, {"data", Weights::data}});
}

/// Meetings at which all workers exchange step infos and take the weighted mean of what each brings: by an
/// allreduce, or by a server that adds. Without a server, a meeting of a group that knows its losses goes on
/// without those who are lost (`Recovery`).
///
/// Thread: one meeting at a time; `aggregate` and `compression` any.
class Averaging {
 public:
  struct Options {
    Weights weights = Weights::samples;
    double data_share = 1;                       ///< p_i of this worker, of weights `data`
    Algorithm algorithm = Algorithm::automatic;  ///< of the allreduce
    Compression compression{};  ///< of the model's values, by the allreduce; buffers travel whole
    bool compress_remote = false;  ///< only between hosts
    double momentum = 0;  ///< of optimizers that get the model's values as gradients, and have one
    ServerClient* server =
        nullptr;  ///< adds what is as long as the model; null: the allreduce does
    /// Of all workers, from now on, after which all end; they count alike, and so need no request for it.
    std::uint64_t samples_to_do = std::numeric_limits<std::uint64_t>::max();
    /// The next round is under way when one has its sum: the end is agreed upon one round ahead, where
    /// the next, should it be like this one, brings all that is left.
    bool ahead = false;
    /// The model's mean is taken bucket by bucket, and may begin before the meeting; not with a server, nor in a
    /// group that knows its losses. Empty: in one piece, at the meeting.
    std::optional<BucketReducer::Options> buckets{};
  };

  using Values = SyncValues;

  struct Result {
    RoundInfo
        round_info;  ///< the round of its meeting is filled in; no step infos, if another ended it
    Duration communicated{};
  };

  /// `group` and the server outlive this.
  Averaging(Group& group, const Options& options);

  /// Before a backward pass over so many samples into `gradient`, which is what the next meeting is of: who takes it
  /// as it is made; null: nobody.
  GradientSink* begin(std::uint64_t samples, std::span<float> gradient);

  /// Errors: RanksMissing, PeerLost, TimedOut; the values are then unspecified.
  Result synchronize(Round round, const StepInfo& info, const Values& values);

  /// Between two meetings: see `Recovery::settle_losses`.
  void agree_after_failures();

  /// This worker will not come again. Waits for those who may need it yet.
  void leave();

  Group& group() const { return group_; }

  /// What adds up, and why, as `Allreduce::description` says it; "server".
  std::string aggregate() const;

  /// What this worker's compression remembers, by name; empty where nothing is compressed. No
  /// synchronization is under way. Errors of `load_states`: DataError.
  std::map<std::string, OptimizerState> worker_states() const;
  void load_worker_states(const std::map<std::string, OptimizerState>& states);
  /// Links are measured again.
  void restart() { allreduce_.forget_links(); }

  /// What compressing has come to; nothing of nothing.
  CompressionStats compression() const { return allreduce_.compression(); }

 private:
  double weight_of(std::uint64_t samples) const;
  Result average_once(Round round, const StepInfo& info, const Values& values);
  Result average_with_recovery(Round round, const StepInfo& info, const Values& values);
  void prepare(std::size_t values);
  void reduce_on_server(std::span<float> values, float share, const PushFacts& facts);

  Group& group_;
  Options options_;
  /// What adds up, beside the group that exchanges step infos: step infos are then about the ends of passes alone, while
  /// buckets are still under way.
  std::optional<Group> bucket_group_;
  Allreduce allreduce_;
  std::optional<Recovery> recovery_;
  std::uint64_t samples_done_ = 0;        ///< of all workers
  std::optional<BucketReducer> buckets_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
