#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "codec/error_feedback.hpp"
#include "data/batch.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// A place at which a worker waits for all others: the end of its loop, or a call that it makes
/// there for the `number`-th time in its job (`WorkerSession::align`).
struct WaitingPlace {
  std::uint32_t number = 0;  ///< 0: nowhere
  std::uint32_t name = 0;    ///< a checksum of the name that the program gives the place

  static constexpr WaitingPlace end_of_loop() { return {.number = 0xFFFFFFFF, .name = 0}; }
  explicit operator bool() const { return number != 0; }

  friend bool operator==(const WaitingPlace&, const WaitingPlace&) = default;
};

/// The actions that a worker requests at the next synchronization round. A request of one worker
/// holds for all workers, except `place`.
struct StepRequests {
  bool stop = false;        ///< end training after this round
  bool evaluate = false;    ///< hand a snapshot to the evaluator after this round
  bool checkpoint = false;  ///< write a checkpoint after this round
  /// The place in its program at which this worker waits for all others, without samples; none: it
  /// takes further steps. Agreed once every worker waits at the same place.
  WaitingPlace place{};

  /// Adds the requests of a later step.
  void merge(const StepRequests& later) {
    stop |= later.stop;
    evaluate |= later.evaluate;
    checkpoint |= later.checkpoint;
    place = later.place;
  }

  friend bool operator==(const StepRequests&, const StepRequests&) = default;
};

/// The facts of a step that a scheme decides upon.
struct StepFacts {
  std::uint32_t samples = 0;  ///< in the batch; 0 where a worker has used up its part of the epoch
  double loss_sum = 0;
  Duration paused{};  ///< since the last round, off the training clock (snapshots, checkpoints)
  StepRequests requests{};
  Duration took{};  ///< data, forward, backward, paced time
  /// True for the last step of all workers, if all are at the same step; otherwise for the last
  /// step that this worker can take. A request to stop is weaker: the worker continues until all
  /// agree.
  bool last = false;
  std::uint64_t step = 0;   ///< of this worker, including this step
  DataPosition position{};  ///< of this worker, after the step
};

/// The time that one `after_backward` spent, by cause.
struct Spent {
  Duration update{};       ///< in the local optimizer: counts as computing
  Duration communicate{};  ///< moving bytes
  Duration wait{};         ///< for other workers

  /// Subtracts `pause`, for which a parameter server delayed its reply while it saved the model,
  /// from the time that the worker was held up. The pause may be longer than that time, because the
  /// worker may have computed during its beginning.
  void take_off(Duration pause) {
    const Duration communicating = std::min(communicate, pause);
    communicate -= communicating;
    wait -= std::min(wait, pause - communicating);
  }
};

/// The local work that one worker contributed to a synchronization round.
struct OwnContribution {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
};

/// A synchronization round. In synchronous schemes all replicas take part, and every worker gets
/// the same values. In asynchronous schemes one replica synchronizes with a server or with shared
/// memory.
struct SyncRound {
  Round round{};  ///< rounds so far; in asynchronous schemes updates of the model so far
  std::uint64_t samples = 0;  ///< of all workers, since this worker's previous round
  double loss_sum = 0;        ///< over these samples
  Duration paused{};          ///< to subtract from this worker's training clock
  StepRequests agreed{};
  GradientSet gradients{};  ///< the union over workers with samples, if they share gradients
  /// A worker that waits at another place than this one, although all workers wait for the others
  /// in the same call by number: their programs have gone apart.
  std::optional<Rank> elsewhere{};
  /// Samples that this worker computed after it had contributed. They are not among `samples`.
  std::uint64_t own_since = 0;
  /// This worker's contribution to the round. Empty: all its work since its previous round. It is
  /// set if workers compute on while replicas synchronize.
  std::optional<OwnContribution> own{};

  /// Adds the work of an earlier round that a worker learns of together with this one. Both have
  /// `own`.
  void add_work_of(const SyncRound& earlier) {
    samples += earlier.samples;
    loss_sum += earlier.loss_sum;
    if (!agreed.place) {
      agreed.place = earlier.agreed.place;
    }
    own->steps += earlier.own->steps;
    own->samples += earlier.own->samples;
  }
};

/// The server's or the shared model's verdict on one gradient.
struct PushStatus {
  std::uint64_t staleness = 0;  ///< updates of the model between its reading and its application
  bool dropped = false;         ///< the scheme discarded the gradient
};

/// The progress of one worker through the data.
struct WorkerPosition {
  std::uint64_t step = 0;
  DataPosition data{};

  friend bool operator==(const WorkerPosition&, const WorkerPosition&) = default;
};

/// The values of a model that evaluation and checkpoints use.
struct ModelParts {
  std::span<const float> params;
  std::span<const float> buffers;
};

/// A synchronization that ran while the replica computed.
struct BackgroundExchange {
  Round round{};
  TimePoint begun{};  ///< when this worker contributed
  TimePoint ended{};  ///< when the result arrived
};

struct Outcome {
  Spent spent{};
  std::optional<SyncRound> sync_round{};    ///< empty where the replica did not synchronize
  std::vector<PushStatus> push_statuses{};  ///< of gradients whose status arrived in this step
  /// The exchanges whose results arrived in this step, in order; `sync_round` includes them.
  std::vector<BackgroundExchange> exchanges{};
};

/// Information for an action that all workers take together.
struct AllWorkers {
  bool first = false;             ///< this worker is the one of rank 0
  std::function<void()> barrier;  ///< returns when every worker has called it as often as this one
};

/// A scheme answers one question after every backward pass: what happens to this replica now?
///
/// It sees a replica, the facts of the step, and the cluster that it was built with. It knows no
/// model, no tensor library and no socket. What only some schemes do is in the classes below, from
/// which these schemes derive, too; `offered` finds them.
///
/// Order: for each step `step_samples`, `rate_factor`, `before_backward`, `after_backward`; between
///        two steps whatever is said to be called there; after the last one `discard_pending` or
///        `flush_pending`, `leave`, `take_model`. `SchemeLife` holds the session to it.
/// Errors of calls that exchange something: PeerLost, TimedOut (names the missing worker), or the
///        error that cancelled the world.
class Scheme {
 public:
  virtual ~Scheme() = default;

  /// Called before a backward pass over `samples` samples. Returns the sink that takes the gradient
  /// while the pass computes it, or null. After a sink was returned, `after_backward` follows with
  /// the whole gradient reported and the same number of samples, or the scheme is not called again.
  /// Errors: none.
  virtual GradientSink* before_backward(Replica& /*replica*/, std::uint32_t /*samples*/) {
    return nullptr;
  }

  /// Decides what happens to the gradient in `replica`, and does it.
  virtual Outcome after_backward(Replica& replica, const StepFacts& facts) = 0;

  /// The number of samples of the next step; 0: all that are left of the mini-batch.
  virtual std::uint32_t step_samples() const { return 0; }

  /// The factor on the learning rate of the next local step, which takes `samples`. Called before
  /// each backward pass.
  virtual double rate_factor(std::uint32_t /*samples*/) { return 1; }

  /// The model that is evaluated and saved: the replica, unless a scheme overrides it.
  virtual ModelParts model(Replica& replica) const {
    return {.params = replica.view(ReplicaVector::params),
            .buffers = replica.view(ReplicaVector::buffers)};
  }

  /// Called between two steps on all workers after a program has given their replicas the same
  /// parameters and buffers: training continues from these. No synchronization with samples is
  /// under way. Optimizers keep their states.
  virtual void take_replica(Replica& /*replica*/, const AllWorkers& /*workers*/) {}

  /// Called once, after the last step: leaves the group. Returns the round in which all workers
  /// left, if there was one.
  virtual std::optional<SyncRound> leave(Replica& /*replica*/) { return std::nullopt; }
};

/// A scheme with a state beyond the replica, for checkpoints.
class SavesState {
 public:
  virtual ~SavesState() = default;

  /// The state that all workers have: by name.
  virtual std::map<std::string, OptimizerState> states() const { return {}; }
  /// The state that belongs only to this worker: by name, without dots. Called at a round at which
  /// replicas agree (`SyncRound::agreed`), while no synchronization is under way.
  virtual std::map<std::string, OptimizerState> worker_states() const = 0;
  /// Restores `worker_states` before the first step of a resumed run; a name may be absent.
  /// Errors: DataError, for damaged state.
  virtual void load_worker_states(const std::map<std::string, OptimizerState>& states) = 0;
};

/// A scheme in which the leading worker sees which steps have entered the model.
class KnowsPositions {
 public:
  virtual ~KnowsPositions() = default;

  /// The progress of each worker, by rank; empty on the others.
  virtual std::vector<WorkerPosition> positions() const = 0;
};

/// A scheme whose workers are in rounds that a run may be resumed between.
class HasRounds {
 public:
  virtual ~HasRounds() = default;

  /// Called between two rounds, where a worker may have failed since the last one: helps the
  /// workers whose round broke to finish it.
  virtual void agree_after_failures() {}
  /// Called when all workers continue at the same time, at the beginning and as in a resumed run:
  /// the scheme repeats measurements that it does not save. `periods`, by rank: in which round
  /// after the last one a worker is next (`RoundBook`); empty: all are in the next one. `self`:
  /// this worker.
  virtual void restart(const std::vector<std::uint32_t>& periods, Rank self) = 0;
};

/// A scheme whose workers wait for steps of others outside of rounds, or whose model is kept by a
/// server or in shared memory.
class SharesModel {
 public:
  virtual ~SharesModel() = default;

  /// Called before a pause in which this worker takes no step: it holds no other worker up until
  /// its next one.
  virtual void rest() {}
  /// Called after `rest`, when all workers rest: takes the model of all. Returns what this worker
  /// then knows of the others, as a round.
  virtual std::optional<SyncRound> fetch(Replica& /*replica*/) { return std::nullopt; }
  /// Called after `leave`, once all workers have left, in jobs whose program continues with its
  /// replica: copies the final model, to which all have contributed, into the replica.
  virtual void take_model(Replica& /*replica*/) {}
};

/// A scheme whose workers divide each step by their speeds.
class DividesSteps {
 public:
  virtual ~DividesSteps() = default;

  /// The samples of all workers in the next step, by rank; empty: they are not divided. Until the
  /// next step.
  virtual std::span<const std::uint32_t> parts() const = 0;
};

/// A scheme with steps that are not yet in the model.
class HasPending {
 public:
  virtual ~HasPending() = default;

  /// Called when the job's samples are complete: discards the steps that this worker has not yet
  /// contributed, and returns their number.
  virtual std::uint64_t discard_pending() = 0;
  /// Called once, after the last step of a job that is not complete, before workers wait for each
  /// other: contributes pending steps, so that the final model holds them. Returns the round of
  /// these steps, if they formed one of their own.
  virtual std::optional<SyncRound> flush_pending(Replica& replica) = 0;
};

/// A scheme that says how its values travel. Thread: that of `after_backward`.
class ReportsTraffic {
 public:
  virtual ~ReportsTraffic() = default;

  /// Bytes of values and replies that this worker received, as far as a scheme counts them.
  virtual std::uint64_t bytes_received() const { return 0; }
  /// How values are reduced over all workers, and why; empty where they are not, or not yet.
  virtual std::string aggregate() const { return {}; }
  /// Statistics of the compression of the values that this worker sent.
  virtual CompressionStats compression() const = 0;
};

/// What a scheme offers beside the calls that each has; null: nothing of this kind.
template <class Part>
Part* offered(Scheme& scheme) {
  return dynamic_cast<Part*>(&scheme);
}
template <class Part>
const Part* offered(const Scheme& scheme) {
  return dynamic_cast<const Part*>(&scheme);
}

/// Holds the caller of a scheme to the order of its life. Errors: InternalError, for a call that
/// does not belong there.
class SchemeLife {
 public:
  /// `before_backward`: the pass of the step before has ended.
  void pass_begins() {
    expect(state_ == State::between);
    state_ = State::in_pass;
  }
  /// `after_backward`, which a step without a pass has, too.
  void pass_ends() {
    expect(state_ != State::left);
    state_ = State::between;
  }
  /// What is called between two steps.
  void expect_between() const { expect(state_ == State::between); }
  /// What is called after the last step, which may have been cancelled in its pass. Once.
  void leaves() {
    expect(state_ != State::left);
    state_ = State::left;
  }

 private:
  enum class State { between, in_pass, left };

  static void expect(bool belongs_here) {
    if (!belongs_here) {
      throw InternalError("a scheme was called where the order of its life has no such call");
    }
  }

  State state_ = State::between;
};

}  // namespace syncopate
