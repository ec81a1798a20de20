#include "report/pace_log.hpp"

#include <string>

namespace syncopate {

using Json = nlohmann::ordered_json;

void PaceLog::decided(const Pace& pace, Duration moment) {
  Round& round = rounds_[pace.worker];
  round.decisions.push_back({.pace = pace, .moment = moment, .steps_before = round.steps});
}

void PaceLog::stepped(Rank worker, const StepReport& report) {
  Round& round = rounds_[worker];
  round.steps = report.steps;
  round.samples += report.samples;
  if (report.synchronizes) {
    write(round, /*synchronized=*/true);
    round = {};
  }
}

void PaceLog::finish() {
  for (const auto& [rank, round] : rounds_) {
    write(round, /*synchronized=*/false);
  }
  rounds_.clear();
  lines_.flush();
}

void PaceLog::write(const Round& round, bool synchronized) {
  for (const Decision& decision : round.decisions) {
    const Pace& pace = decision.pace;
    lines_.write({{"worker", pace.worker.value},
                  {"round", pace.round},
                  {"seconds", to_seconds(decision.moment)},
                  {"steps_before", decision.steps_before},
                  {"planned_steps", pace.sync_after ? Json(*pace.sync_after) : Json(nullptr)},
                  {"step_samples", pace.step_samples},
                  {"reason", std::string(words_for(pace.reason))},
                  {"taken_steps", synchronized ? Json(round.steps) : Json(nullptr)},
                  {"round_samples", synchronized ? Json(round.samples) : Json(nullptr)}});
  }
}

}  // namespace syncopate
