#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optim/update_rule.hpp"
#include "scheme/averaging.hpp"
#include "scheme/background_meeting.hpp"
#include "scheme/control_variates.hpp"
#include "scheme/local_progress.hpp"
#include "scheme/scheme.hpp"
#include "scheme/sync_schedule.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// Rounds of local steps, each closed by one synchronous aggregation. With w_t the global model at the
/// beginning of round t, w_i replica i at its end, Δ_i = w_i − w_t, and n_i the samples of its steps:
///
///     w_{t+1} = outer(w_t, −Σ n_i Δ_i / N)
///
/// where the outer optimizer takes −Σ n_i Δ_i / N for a gradient; plain SGD at the global learning rate
/// ε_g makes it w_t + ε_g · Σ n_i Δ_i / N. When a replica meets the others is told by its synchronization schedule:
///
///     local-sgd  every H steps, ε_g = 1                                     Stich 2018
///     diloco     every H steps, Nesterov at 0.7 with momentum 0.9           Douillard et al. 2023
///     esync      when the pacer says so                                     Li et al. 2019, algorithm 1
///
/// The state of the replica's own optimizer lives on across rounds.
///
/// With overlap a replica trains on while the sum travels. When that has come, w_i becomes
/// w_{t+1} + (w_i − what it was when it went to the meeting): local progress since then is kept, and is
/// part of the next Δ_i. So the global model, which is tested and saved, is not that of any replica.
/// Once the end is agreed upon, the round under way is the last, and its sum is waited for. Likewise, when
/// a checkpoint is agreed upon, the allreduce of the next round is waited for: replicas then agree, and that
/// round's meeting says `agreed.checkpoint`.
///
/// Buffers are averaged with the same weights; likewise.
///
/// Where a worker's weight is its share p_i of the data, changes are normalised by the local steps behind
/// them (FedNova, `weight_of_change`): w_{t+1} = outer(w_t, −ā Σ p_i Δ_i / a_i), a_i the `LocalProgress`
/// of the round, ā = Σ p_i a_i. With drift correction local steps follow `ControlVariates`.
class LocalRounds : public Scheme {
 public:
  /// The name of the outer optimizer's among `states`.
  static constexpr const char* state_of_outer = "outer";

  struct Options {
    Averaging::Options averaging{};
    Round done{};  ///< rounds that came before, in a run that is resumed
    RuleSpec outer{.name = "sgd", .momentum = 0};
    double outer_rate = 1;
    OptimizerState outer_state{};  ///< of a run that is resumed
    bool overlap = false;
    LocalProgress::Options local{};          ///< of the replicas' optimizer
    std::optional<std::uint32_t> control{};  ///< memory of control variates, samples; empty: none
  };

  LocalRounds(Group& group, std::unique_ptr<SyncSchedule> schedule, Options options);

  Outcome after_backward(Replica& replica, const StepFacts& facts) override;
  std::uint32_t step_samples() const override { return sync_schedule_->step_samples(); }
  double rate_factor() const override { return progress_.rate_factor(); }
  ModelParts model(Replica& replica) const override;
  std::map<std::string, OptimizerState> states() const override;
  std::map<std::string, OptimizerState> worker_states() const override;
  void load_worker_states(const std::map<std::string, OptimizerState>& states) override;
  void settle_losses() override { averaging_.settle_losses(); }
  void restart() override { averaging_.restart(); }
  std::string aggregate() const override { return averaging_.aggregate(); }
  CompressionStats compression() const override { return averaging_.compression(); }
  std::optional<Meeting> leave(Replica& replica) override;

 private:
  void begin_with(Replica& replica);
  bool waits() const { return !options_.overlap || last_round_ || drains_; }
  void hold(const StepFacts& facts);
  StepInfo depart(Replica& replica);
  Meeting return_from(const Averaging::Result& met, Replica& replica, Spent& spent);
  Meeting meet_at_once(Replica& replica, Spent& spent);
  Meeting end_meeting(Replica& replica, Spent& spent);
  Averaging::Values lent() {
    return {.model = mean_.all(), .buffers = mean_buffers_, .control = mean_control_};
  }
  void correct(Replica& replica, const StepFacts& facts);

  const Clock& clock_;
  Averaging averaging_;
  std::unique_ptr<SyncSchedule> sync_schedule_;
  Options options_;
  std::unique_ptr<UpdateRule> outer_;
  Round round_;
  bool last_round_ = false;       ///< the end is agreed upon
  bool drains_ = false;           ///< a checkpoint is agreed upon, which the next round ends with
  StepInfo held_;                 ///< what this replica's next step info says
  std::uint64_t held_steps_ = 0;  ///< likewise
  OwnPart gone_with_{};           ///< with what it went to its meeting
  Duration communicated_{};
  LocalProgress progress_;
  std::optional<ControlVariates> control_;

  // As long as the parts of the replica; empty before the first step.
  std::vector<float> global_;          ///< w_t
  std::vector<float> global_buffers_;  ///< likewise
  std::vector<float> gone_;          ///< the parameters with which the replica went to its meeting
  std::vector<float> gone_buffers_;  ///< likewise
  SharedValues mean_;                ///< Δ_i, and then their mean; lent to the meeting under way
  std::vector<float> mean_buffers_;  ///< likewise
  std::vector<float> mean_control_;  ///< c_i, and then c; lent; empty without drift correction

  BackgroundMeeting meeting_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
