#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "codec/error_feedback.hpp"
#include "data/batch.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// What a worker wants to happen at the next meeting. Whatever one of them wants, all do.
struct StepRequests {
  bool stop = false;        ///< end training after this round
  bool evaluate = false;    ///< hand a snapshot to the evaluator after this round
  bool checkpoint = false;  ///< write a checkpoint after this round

  friend bool operator==(const StepRequests&, const StepRequests&) = default;
};

/// The facts of a step that a scheme decides upon.
struct StepFacts {
  std::uint32_t samples = 0;  ///< in the batch; 0 where a worker's part of the epoch is used up
  double loss_sum = 0;
  Duration paused{};  ///< since the last meeting, off the training clock (snapshots, checkpoints)
  StepRequests requests{};
  Duration took{};  ///< data, forward, backward, paced time
  /// The last step of every worker, where all are at the same one; elsewhere of this one, which can take
  /// no more. A request to stop is less: there a worker goes on until all have agreed.
  bool last = false;
  std::uint64_t step = 0;   ///< of this worker, this one included
  DataPosition position{};  ///< of this worker, after the step
};

/// Where the time of one `after_backward` went.
struct Spent {
  Duration update{};       ///< in the local optimizer: counts as computing
  Duration communicate{};  ///< moving bytes
  Duration wait{};         ///< for others who were not there yet
};

/// What one worker brought to a synchronization round.
struct OwnPart {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
};

/// A meeting of replicas: with each other, the same on every worker; or of one replica with what the
/// others have left in a server or in shared memory.
struct Meeting {
  Round round{};              ///< meetings so far; where workers go apart: updates of the model
  std::uint64_t samples = 0;  ///< of all workers, since this one's meeting before
  double loss_sum = 0;        ///< likewise
  Duration paused{};          ///< to be taken off this worker's training clock
  StepRequests agreed{};
  /// Of this worker's samples, those since it contributed: they are not among `samples`.
  std::uint64_t own_since = 0;
  /// This worker's part of that round, where it is not what it has done since its meeting before: where a worker
  /// goes on computing while replicas synchronize.
  std::optional<OwnPart> own{};
};

/// What became of the gradient that a worker handed in.
struct PushStatus {
  std::uint64_t staleness = 0;  ///< updates of the model between its reading and its application
  bool dropped = false;         ///< left out by design
};

/// How far a worker has come.
struct WorkerPosition {
  std::uint64_t step = 0;
  DataPosition data{};

  friend bool operator==(const WorkerPosition&, const WorkerPosition&) = default;
};

/// A model as those see it who test it and write it down.
struct ModelParts {
  std::span<const float> params;
  std::span<const float> buffers;
};

struct Outcome {
  Spent spent{};
  std::optional<Meeting> meeting{};         ///< empty where the replica went on alone
  std::vector<PushStatus> push_statuses{};  ///< of gradients of which word has come
};

/// The answer to one question, asked after every backward pass: what happens to this replica now?
///
/// A scheme sees a replica, the facts of the step, and the cluster that it was built with. It knows
/// no model, no tensor library and no socket.
class Scheme {
 public:
  virtual ~Scheme() = default;

  /// Asked before a backward pass over so many samples: who takes its gradient as it is made; null: nobody.
  /// `after_backward` then comes with all of it told, of as many samples; or never again.
  /// Errors: none.
  virtual GradientSink* before_backward(Replica& /*replica*/, std::uint32_t /*samples*/) {
    return nullptr;
  }

  /// Decides the fate of the gradients in `replica`, and applies it.
  /// Errors: PeerLost, TimedOut (names who is missing), or what the world was cancelled with.
  virtual Outcome after_backward(Replica& replica, const StepFacts& facts) = 0;

  /// How many samples of its mini-batch the next step takes; 0: all that are left.
  virtual std::uint32_t step_samples() const { return 0; }

  /// What the learning rate of the next local step is multiplied by.
  virtual double rate_factor() const { return 1; }

  /// The model that is tested and saved. It is the replica, unless a scheme says otherwise.
  virtual ModelParts model(Replica& replica) const {
    return {.params = replica.view(Part::params), .buffers = replica.view(Part::buffers)};
  }

  /// What a scheme remembers beyond the replica, for a checkpoint: by name.
  virtual std::map<std::string, OptimizerState> states() const { return {}; }

  /// How far each worker has come, by rank, where the worker that leads can see what has entered the model;
  /// empty elsewhere.
  virtual std::vector<WorkerPosition> positions() const { return {}; }

  /// What this worker's part of a scheme remembers that other workers' parts do not: by name, without
  /// dots. Asked at a round at which replicas agree (`Meeting::agreed`), where nothing is under way.
  virtual std::map<std::string, OptimizerState> worker_states() const { return {}; }
  /// Before the first step of a run that is resumed: what `worker_states` was; a name may be absent.
  /// Errors: DataError, for what is damaged.
  virtual void load_worker_states(const std::map<std::string, OptimizerState>& /*states*/) {}
  /// Called between two synchronizations, where a worker may have been dropped since the last one: helps
  /// those for whom that one broke. Errors: as `after_backward`.
  virtual void settle_losses() {}
  /// All workers go on at one moment, as in a run that is resumed here: what a scheme has measured, and
  /// does not keep, is measured again.
  virtual void restart() {}

  /// Bytes of others' values and answers that came, as far as a scheme knows.
  virtual std::uint64_t bytes_received() const { return 0; }

  /// What adds up where all workers meet, and why; empty where nothing does, or has not yet. Thread: that
  /// of `after_backward`.
  virtual std::string aggregate() const { return {}; }

  /// What compressing has come to, of what this worker has sent. Thread: that of `after_backward`.
  virtual CompressionStats compression() const { return {}; }

  /// The job's samples are complete: gives up what this worker has trained on and not handed over.
  /// Returns how many steps that is.
  virtual std::uint64_t discard_pending() { return 0; }

  /// Called once, after the last step of a job that is not complete, before workers wait for each other:
  /// hands in what others are to find in the model when all have ended. Errors: as `after_backward`.
  virtual void hand_in(Replica& /*replica*/) {}

  /// Called once, after the last step: hands in what it still holds back, and takes leave of those
  /// that go on. Returns the meeting at which all did so, if there was one.
  /// Errors: as `after_backward`.
  virtual std::optional<Meeting> leave(Replica& /*replica*/) { return std::nullopt; }
};

}  // namespace syncopate
