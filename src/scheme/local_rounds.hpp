#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/rule_state.hpp"
#include "optim/update_rule.hpp"
#include "scheme/averaging.hpp"
#include "scheme/control_variates.hpp"
#include "scheme/primal_averaging.hpp"
#include "scheme/scheme.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// A local step, as a sync schedule sees it.
struct LocalStep {
  std::uint32_t samples = 0;
  Duration took{};          ///< data, forward, backward, update
  bool last = false;        ///< as `StepFacts::last`
  Duration communicated{};  ///< of a round that ended since the step before; else zero
  bool ends = false;        ///< this worker requests the end of the job
  bool waits = false;       ///< it waits for all others, without samples
};

/// Decides after which local steps a replica synchronizes.
class SyncSchedule {
 public:
  virtual ~SyncSchedule() = default;

  /// Called after each step. True if the replica synchronizes now; a new round begins then.
  virtual bool due_after(const LocalStep& step) = 0;
  /// The number of samples of the next step; 0: all that are left of the mini-batch.
  virtual std::uint32_t step_samples() const { return 0; }
  /// The factor on the learning rate of the next step, which takes `samples`.
  virtual double rate_factor(std::uint32_t /*samples*/) const { return 1; }
  /// True if a round ends as soon as the samples of the job are done.
  virtual bool ends_with_the_job() const { return false; }
  /// After `due_after` was true: in how many rounds the replica synchronizes next. The period of a
  /// slow worker is above 1 where its schedule allows that (`RoundBook`).
  virtual std::uint32_t period() const { return 1; }
  /// All workers synchronize next in `round`, which begins rounds of any period; a worker that
  /// expected to do so later, after its next step.
  virtual void call(std::uint64_t /*round*/) {}
  /// All workers begin again after the round `last`, which begins rounds of any period. This one
  /// synchronizes `period` rounds later.
  virtual void restart(std::uint64_t /*last*/, std::uint32_t /*period*/) {}
  /// The state of this worker's schedule after a round, for a checkpoint; may be empty.
  virtual OptimizerState state() const { return {}; }
  virtual void load(const OptimizerState& /*state*/) {}
};

/// Synchronizes after a fixed number of steps, and after the last step.
class FixedSchedule : public SyncSchedule {
 public:
  explicit FixedSchedule(std::uint32_t steps) : steps_(steps) {}

  bool due_after(const LocalStep& step) override {
    done_ = (done_ + 1) % steps_;
    const bool due = done_ == 0 || step.last;
    done_ = due ? 0 : done_;
    return due;
  }

 private:
  std::uint32_t steps_;
  std::uint32_t done_ = 0;  ///< steps of this round
};

/// The distance that the local steps of a round carry a replica along a constant gradient, in units
/// of the learning rate: ‖a_i‖₁ of FedNova (Wang et al. 2020). A replica's change is divided by it,
/// so that a worker with many local steps does not pull the model towards its own part of the data.
///
/// A plain step counts 1. With momentum m, step k counts the velocity v_k = m v_{k−1} + 1 that a
/// gradient of 1 gives it; with Nesterov's momentum it counts 1 + m v_k. Factors of the learning
/// rate multiply the count. The velocity lives on across rounds, as that of the replica's
/// optimizer does (in FedNova's own formula it is 0 at the beginning of each round).
///
/// With a shared rate each of the τ_i local steps of a round takes 1 / τ_i of the learning rate, so
/// that a round carries every replica as far as one step does. The number of steps of a round is
/// not known before it ends, so τ_i is that of the previous round; the lengths are exact all the
/// same. Pure.
class LocalProgress {
 public:
  struct Options {
    double momentum = 0;  ///< of the replica's optimizer; 0 where it has none
    bool nesterov = false;
    bool shared_rate = false;  ///< the steps of a round share the learning rate
  };

  /// The state that lives on from round to round.
  struct State {
    double velocity = 0;
    std::uint64_t steps = 1;  ///< of the last round
  };

  explicit LocalProgress(const Options& options) : options_(options) {}

  /// The factor on the learning rate of the steps of this round.
  double rate_factor() const {
    return options_.shared_rate ? 1 / static_cast<double>(state_.steps) : 1;
  }

  /// Counts a local step, whose learning rate had the round's factor and the step's own factor.
  void on_step(double own_factor = 1) {
    double& velocity = state_.velocity;
    velocity = options_.momentum * velocity + 1;
    const double distance = options_.nesterov ? 1 + options_.momentum * velocity : velocity;
    length_ += rate_factor() * own_factor * distance;
    ++steps_;
  }

  /// Ends the round and returns its length.
  double finish_round() {
    state_.steps = std::max<std::uint64_t>(1, std::exchange(steps_, 0));
    return std::exchange(length_, 0);
  }

  const State& state() const { return state_; }
  /// Continues from a `state` that was taken at the end of a round.
  void resume(const State& state) { state_ = state; }

 private:
  Options options_;
  State state_;
  std::uint64_t steps_ = 0;  ///< of this round
  double length_ = 0;        ///< of this round
};

/// Rounds of local steps. Each round ends with one synchronous aggregation. With w_t the global
/// model at the beginning of round t, w_i replica i at its end, Δ_i = w_i − w_t, and n_i the
/// samples of its steps:
///
///     w_{t+1} = outer(w_t, −Σ n_i Δ_i / N)
///
/// The outer optimizer takes −Σ n_i Δ_i / N as its gradient. Plain SGD with the global learning
/// rate ε_g gives w_t + ε_g · Σ n_i Δ_i / N. The sync schedule decides when a round ends:
///
///     local-sgd  every H steps, ε_g = 1                              Stich 2018
///     diloco     every H steps, Nesterov at 0.7 with momentum 0.9    Douillard et al. 2023
///     esync      when the pacer signals it                           Li et al. 2019, algorithm 1
///
/// The state of the replica's own optimizer lives on across rounds. Buffers are averaged with the
/// same weights.
///
/// A slow worker may take part in every p-th round only (`SyncSchedule::period`). Its Δ_i is then
/// its change since its last round t − p, n_i / N its share of the samples of all since then, and
/// it continues from w_{t+1}, which another worker gives it (`Averaging::Newest`).
///
/// With overlap a replica trains on while its contribution is reduced. When the result arrives, w_i
/// becomes w_{t+1} + (w_i − the parameters that it contributed): the replica keeps its local
/// progress since then, which is part of the next Δ_i. The global model, which is evaluated and
/// saved, therefore differs from every replica. When the workers agree on the end, the round that
/// is under way is the last, and all wait for its result. When they agree on a checkpoint, all wait
/// for the result of the next round: replicas are then equal, and that round has
/// `agreed.checkpoint`.
///
/// With overlap each round may synchronize one fragment of the parameters, all of them in turn
/// (Streaming DiLoCo, Douillard et al. 2025). Δ_i is then the change of the fragment since its last
/// round, n_i the samples since. The last round, and one before a checkpoint, synchronize all.
///
/// Where a worker's weight is its share p_i of the data, changes are normalised by the local steps
/// that made them (FedNova, `weight_of_change`): w_{t+1} = outer(w_t, −ā Σ p_i Δ_i / a_i), a_i the
/// `LocalProgress` of the round, ā = Σ p_i a_i. With drift correction local steps follow
/// `ControlVariates`.
class LocalRounds : public AveragingScheme, public HasRounds {
 public:
  /// The name of the outer optimizer's state among `states`.
  static constexpr const char* state_of_outer = "outer";
  /// The slot of that state with the model from which workers take their steps, if another is
  /// tested and saved (`PrimalAveraging`).
  static constexpr const char* trained_model = "trained";

  struct Options {
    Averaging::Options averaging{};
    Round done{};  ///< rounds before this run, where it is resumed
    RuleSpec outer{.name = "sgd", .momentum = 0};
    std::optional<PrimalAveraging::Options> averaged{};  ///< in place of `outer`
    double outer_rate = 1;
    OptimizerState outer_state{};  ///< of a resumed run
    bool overlap = false;
    std::uint32_t fragments = 1;             ///< above 1 only with overlap, rounds of all workers
    LocalProgress::Options local{};          ///< of the replicas' optimizer
    std::optional<std::uint32_t> control{};  ///< memory of control variates, samples; empty: none
  };

  LocalRounds(Group& group, std::unique_ptr<SyncSchedule> schedule, Options options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return sync_schedule_->step_samples(); }
  double rate_factor(std::uint32_t samples) override;
  ModelParts model(Replica& replica) const override;
  std::map<std::string, OptimizerState> states() const override;
  std::map<std::string, OptimizerState> worker_states() const override;
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override;
  void agree_after_failures() override { averaging_.agree_after_failures(); }
  void restart(const std::vector<std::uint32_t>& periods, Rank self) override;
  /// Resets the outer optimizer: its momentum belongs to the former model.
  void take_replica(Replica& replica, const AllWorkers& workers) override;
  /// Leaves the model that is saved in the replica.
  std::optional<SyncRound> leave(Replica& replica) override;

 private:
  void initialise(Replica& replica);
  ValueRange next_part();
  bool blocks() const { return !options_.overlap || last_round_ || drains_; }
  void correct(Replica& replica, const StepFacts& facts);
  void accumulate(const StepFacts& facts);
  void save_change(std::span<float> params);
  StepInfo contribute(Replica& replica, Spent& spent);
  void move_model(bool moves, std::span<float> params);
  SyncRound apply_result(const Averaging::Result& result, Replica& replica, Spent& spent);
  SyncRound synchronize_now(Replica& replica, Spent& spent);
  SyncRound finish_background(Replica& replica, Spent& spent);
  SyncValues sync_values();
  void take_newest(Averaging::Newest newest);
  void all_continue_after(Round round);

  const Clock& clock_;
  std::unique_ptr<SyncSchedule> sync_schedule_;
  Options options_;
  std::unique_ptr<UpdateRule> outer_;
  PrimalAveraging* averaged_ = nullptr;  ///< `outer_`, if it is one
  Round round_;                          ///< of the last contribution
  std::uint32_t period_ = 1;             ///< from that round to the one of the next contribution
  bool last_round_ = false;              ///< the workers agreed on the end
  bool drains_ = false;               ///< the workers agreed on a checkpoint after the next round
  StepInfo pending_;                  ///< this replica's next step info
  std::uint64_t pending_steps_ = 0;   ///< steps since the last contribution
  OwnContribution contribution_{};    ///< to the last round
  ValueRange part_;                   ///< of the parameters, in the last round
  std::uint64_t samples_behind_ = 0;  ///< the change of that part
  std::vector<std::uint64_t> samples_of_fragments_;  ///< since the last round of each
  StepRequests requested_{};                         ///< with it
  double step_factor_ = 1;                           ///< factor on the rate of the step under way
  Duration contributing_{};                          ///< of the last contribution
  Duration communicated_{};
  LocalProgress progress_;
  std::optional<ControlVariates> control_;

  // As long as the vectors of the replica; empty before the first step.
  std::vector<float> global_;               ///< w_t
  mutable std::vector<float> tested_;       ///< its average, where that is tested and saved
  std::vector<float> global_buffers_;       ///< buffers of the global model
  std::vector<float> contributed_;          ///< the replica's parameters at its last contribution
  std::vector<float> contributed_buffers_;  ///< the replica's buffers at its last contribution
  SharedValues mean_;                    ///< Δ_i, then their mean; borrowed by the round under way
  std::vector<float> mean_buffers_;      ///< the contributed buffers, then their mean; borrowed
  std::vector<float> mean_control_;      ///< c_i, then c; borrowed; empty without drift correction
  std::vector<float> newest_;            ///< w_t of a worker that has missed rounds; borrowed
  std::vector<std::byte> newest_state_;  ///< of the outer optimizer; borrowed

  BackgroundAveraging background_;  ///< last: it ends before the objects that it uses
};

/// Sets the options of rounds of local steps that were left open; `usual` is the scheme's outer
/// optimizer.
void resolve_rounds(SchemeDefaults& defaults, OuterOptimizer usual);

/// Refuses an outer optimizer that contradicts its momentum. Errors: ConfigError.
void check_rounds(const SchemeJob& job);

/// Makes `LocalRounds` from the options of the context.
std::unique_ptr<Scheme> make_local_rounds(const SchemeContext& context,
                                          std::unique_ptr<SyncSchedule> schedule, bool overlap);

/// The same with a `FixedSchedule` of the option `local_steps`.
std::unique_ptr<Scheme> make_fixed_rounds(const SchemeContext& context);

}  // namespace syncopate
