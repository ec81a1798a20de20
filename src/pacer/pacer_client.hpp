#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// What decides when the workers of a round meet.
enum class PaceRule {
  paper,  ///< a round is one mini-batch of the slowest (ESync, Li et al. 2019, algorithm 2)
  timed,  ///< rounds have a length; where a whole mini-batch does not fit, a share of it is trained on
};

/// What a worker says after a local step. Durations are its own; it never sends a time of its clock.
struct StepReport {
  std::uint64_t round = 0;    ///< that the step belongs to; the first is 1
  std::uint64_t steps = 0;    ///< local steps in that round so far, this one included
  std::uint32_t samples = 0;  ///< of the step
  Duration took{};            ///< data, forward, backward, update
  bool meets = false;       ///< it goes to the round's meeting now, and then begins the next round
  Duration communicated{};  ///< in the last meeting, waiting apart; said once (0: nothing new)
};

/// Why a worker was told what it was told.
enum class PaceReason {
  first_round,          ///< nothing is known of it: it meets after its first step
  slowest,              ///< the others wait for none but it
  with_the_slowest,     ///< the slowest is at the meeting
  no_time_for_another,  ///< another step would not end in time for the meeting
  resized,              ///< its steps are to be of another size; nothing is said of meeting
};

/// "no time for another step": for people.
std::string_view words_for(PaceReason reason);

/// A decision: tell this worker.
struct Pace {
  Rank worker;
  std::uint64_t round = 0;
  /// Meet once that many local steps of `round` are done; one that has done more by then meets after
  /// the step in hand. Empty: not decided yet. Once there, it stays for that round.
  std::optional<std::uint64_t> meet_after;
  std::uint32_t step_samples = 0;  ///< of the steps after the one in hand
  PaceReason reason = PaceReason::resized;
};
using Paces = std::vector<Pace>;

/// The pace at which a worker begins, and which it keeps until it is told another one. Worker and
/// pacer ask this function both, so that no message can come too late for the first step.
struct FirstPace {
  std::uint32_t step_samples = 0;
  std::optional<std::uint64_t> meet_after;  ///< of its first round
};

/// Under `paper` whole mini-batches, of which the first ends the first round, as in the paper, where
/// the first to report is the slowest known. Under `timed` probes, and no meeting until all are known.
FirstPace first_pace(PaceRule rule, std::uint32_t batch_size);

/// The least share of a mini-batch that is worth a step: a sixteenth, and two samples, below which
/// BatchNorm has no variance.
std::uint32_t probe_samples(std::uint32_t batch_size);

/// What watchers of a pacer see.
struct PacerState {
  struct Worker {
    bool present = true;
    double step_seconds = 0;    ///< estimated, of its next steps; 0: unknown
    double sample_seconds = 0;  ///< likewise
    std::uint64_t round = 0;    ///< that its step in hand belongs to
    std::uint64_t steps = 0;    ///< of that round
    std::optional<std::uint64_t> meet_after;
    std::uint32_t step_samples = 0;
    std::optional<PaceReason> reason;  ///< of what it was told last
    bool overdue = false;              ///< its step in hand should have ended
  };

  std::uint64_t round = 0;           ///< whose meeting is under way, or comes next
  Duration round_time{};             ///< planned; zero: unknown
  Duration communication{};          ///< estimated, of a meeting; zero: unknown
  std::vector<Worker> workers = {};  ///< by rank
};

/// The share of each worker's speed in that of all, by rank: 0 for one that is gone. Empty until the
/// speed of every worker present is known.
std::vector<double> speed_shares(const PacerState& state);

/// What a worker was told last. Nothing at first.
struct PaceOrder {
  std::uint64_t round = 0;         ///< of which `meet_after` is said
  std::uint64_t meet_after = 0;    ///< local steps; 0: not said
  std::uint32_t step_samples = 0;  ///< of the next steps; 0: not said
};

/// A worker's line to the pacer. What is said goes one way: nobody waits for an answer.
class PacerClient {
 public:
  virtual ~PacerClient() = default;

  virtual void report(const StepReport& report) = 0;
  virtual PaceOrder order() const = 0;
};

}  // namespace syncopate
