#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "collective/group.hpp"
#include "scheme/meeting.hpp"
#include "scheme/recovery.hpp"
#include "server/server_client.hpp"

namespace syncopate {

/// How workers are weighted in a mean over them.
enum class Weights {
  samples,  ///< Σ n_i x_i / N: of gradients, the gradient of the union of the batches
  uniform,  ///< Σ x_i / P: the papers' mean, right only where all n_i are equal
};

/// Meetings at which all workers exchange cards and take the weighted mean of what each brings: around
/// a ring, or by a server that adds. Around the ring of a group that knows its losses a meeting goes on
/// without those who are lost (`Recovery`).
///
/// Thread: one meeting at a time.
class Averaging {
 public:
  struct Options {
    Weights weights = Weights::samples;
    ServerClient* server = nullptr;  ///< adds what is as long as the model; null: the ring does
    /// Of all workers, from now on, after which all end; they count alike, and so need no wish for it.
    std::uint64_t samples_to_do = std::numeric_limits<std::uint64_t>::max();
    /// The next round is under way when one has its sum: the end is agreed upon one round ahead, where
    /// the next, should it be like this one, brings all that is left.
    bool ahead = false;
  };

  using Values = MeetingValues;

  struct Result {
    CardTable table;  ///< the round of its meeting is filled in; no cards, if another ended it
    Duration communicated{};
  };

  /// `group` and the server outlive this.
  Averaging(Group& group, const Options& options);

  /// Errors: RanksMissing, PeerLost, TimedOut; the values are then unspecified.
  Result meet(Round round, const Card& card, const Values& values);

  /// This worker will not come again. Waits for those who may need it yet.
  void leave();

  Group& group() const { return group_; }

 private:
  Result attempt(Round round, const Card& card, const Values& values);
  Result meet_with_those_left(Round round, const Card& card, const Values& values);
  void add_by_server(std::span<float> values, float share, const PushFacts& facts);

  Group& group_;
  Options options_;
  std::optional<Recovery> recovery_;
  std::uint64_t samples_done_ = 0;  ///< of all workers
};

}  // namespace syncopate
