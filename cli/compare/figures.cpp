#include "cli/compare/figures.hpp"

#include <algorithm>
#include <limits>

#include "base/errors.hpp"
#include "report/scoreboard.hpp"
#include "scheme/scheme_spec.hpp"
#include "telemetry/metrics.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double never = std::numeric_limits<double>::infinity();

std::optional<double> number_or_none(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

std::optional<double> time_to_target(const Json& evaluations, std::optional<double> target) {
  Scoreboard scoreboard(target);
  for (const Json& evaluation : evaluations) {
    scoreboard.add({.samples = evaluation.at("samples"),
                    .training_seconds = evaluation.at("training_seconds"),
                    .accuracy = evaluation.at("accuracy")});
  }
  return scoreboard.time_to_target_seconds();
}

std::vector<DeviceFigures> devices_in(const Json& workers) {
  std::vector<DeviceFigures> devices;
  for (const Json& worker : workers) {
    devices.push_back({.name = worker.at("device"),
                       .computing = worker.at("computing_time_ratio"),
                       .communication = worker.at("communication_ratio"),
                       .wait = worker.at("wait_ratio"),
                       .throughput = worker.at("throughput")});
  }
  return devices;
}

/// The median of one figure over all runs.
template <class Item, class Get>
std::optional<double> median_over(const std::vector<Item>& items, Get get) {
  std::vector<double> values;
  for (const Item& item : items) {
    values.push_back(get(item));
  }
  return median_of(std::move(values));
}

std::vector<DeviceFigures> devices_over(const std::vector<RunFigures>& runs) {
  std::vector<DeviceFigures> devices;
  if (runs.empty()) {
    return devices;
  }
  for (std::size_t rank = 0; rank < runs.front().devices.size(); ++rank) {
    const auto median = [&](double DeviceFigures::*figure) {
      return *median_over(runs, [&](const auto& run) { return run.devices.at(rank).*figure; });
    };
    devices.push_back({.name = runs.front().devices[rank].name,
                       .computing = median(&DeviceFigures::computing),
                       .communication = median(&DeviceFigures::communication),
                       .wait = median(&DeviceFigures::wait),
                       .throughput = median(&DeviceFigures::throughput)});
  }
  return devices;
}

/// Omits totals that the summary lacks, as that of imported logs does. A summary of an older
/// version has the exchanged bytes in two parts.
Totals totals_in(const Json& summary) {
  Totals totals;
  const auto messages = summary.find("traffic_bytes");
  if (messages != summary.end() && messages->is_number()) {
    totals["exchanged_bytes"] = messages->get<double>() + summary.value("local_bytes", 0.0);
  }
  for (const MetricSpec& metric : labelled_metrics()) {
    const auto found = summary.find(metric.names.summary);
    if (found != summary.end() && found->is_number()) {
      totals[std::string(metric.names.summary)] = found->get<double>();
    }
  }
  return totals;
}

/// Returns the number of samples that the totals of a summary cover. The totals are those of the
/// session, but `samples` is that of the job, which in a resumed run includes earlier sessions.
/// Workers also count samples whose gradients were dropped, so the smaller count is the right one.
double session_samples_in(const Json& summary) {
  const double of_job = summary.at("samples");
  const Json& workers = summary.at("workers");
  double computed = 0;
  for (const Json& worker : workers) {
    const auto samples = worker.find("samples");
    if (samples == worker.end() || !samples->is_number()) {
      return of_job;  // a summary of another version
    }
    computed += samples->get<double>();
  }
  return workers.empty() ? of_job : std::min(of_job, computed);
}

/// Adds the medians over one or more runs of the totals that each run has.
void add_totals(ContestantFigures& figures, const std::vector<RunFigures>& runs) {
  for (const MetricSpec& metric : labelled_metrics()) {
    const std::string name(metric.names.summary);
    const bool known = std::all_of(
        runs.begin(), runs.end(), [&](const RunFigures& run) { return run.totals.contains(name); });
    if (!known) {
      continue;
    }
    figures.totals[name] =
        *median_over(runs, [&](const RunFigures& run) { return run.totals.at(name); });
    if (!metric.per_sample_label.empty()) {
      figures.totals_per_sample[name] = *median_over(runs, [&](const RunFigures& run) {
        return ratio(run.totals.at(name), run.session_samples);
      });
    }
  }
}

const ContestantFigures* named(const std::vector<ContestantFigures>& all, std::string_view label) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.label == label; });
  return found == all.end() ? nullptr : &*found;
}

/// The time of another contestant divided by the time of this one.
std::optional<double> quotient(const ContestantFigures* other, const ContestantFigures& one) {
  if (other == nullptr || !other->time_to_target || !one.time_to_target ||
      one.time_to_target->median <= 0) {
    return std::nullopt;
  }
  return other->time_to_target->median / one.time_to_target->median;
}

}  // namespace

RunFigures figures_of(const Json& summary, std::optional<double> target) {
  try {
    const Json& staleness = summary.at("staleness");
    return {.time_to_target = time_to_target(summary.at("evaluations"), target),
            .accuracy = number_or_none(summary, "accuracy"),
            .learning_rate = number_or_none(summary, "learning_rate"),
            .training_seconds = summary.at("training_seconds"),
            .samples = summary.at("samples"),
            .throughput = summary.at("throughput"),
            .cluster_efficiency = summary.at("cluster_efficiency"),
            .totals = totals_in(summary),
            .session_samples = session_samples_in(summary),
            .median_staleness = staleness.at("median"),
            .p99_staleness = staleness.at("p99"),
            .most_staleness = staleness.at("max"),
            .devices = devices_in(summary.at("workers"))};
  } catch (const Json::exception&) {
    throw DataError(
        "expected all fields of a comparison in a summary.json, found one missing or of another "
        "type; remove the run's folder to run it again");
  }
}

std::optional<RunFigures> kept_figures(const Json& run) {
  try {
    return RunFigures{.time_to_target = number_or_none(run, "time_to_target_seconds"),
                      .accuracy = number_or_none(run, "accuracy"),
                      .learning_rate = number_or_none(run, "learning_rate"),
                      .training_seconds = run.at("training_seconds"),
                      .samples = run.at("samples"),
                      .throughput = run.at("throughput"),
                      .cluster_efficiency = run.at("cluster_efficiency"),
                      .totals = totals_in(run),
                      .session_samples = run.at("samples"),  // no run of a comparison is resumed
                      .devices = devices_in(run.at("devices"))};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

ContestantFigures figures_over(const std::string& label, const std::vector<RunFigures>& runs) {
  std::vector<RunFigures> sound;
  std::vector<std::optional<double>> times;
  std::vector<double> accuracies;
  ContestantFigures figures{.label = label, .runs = runs.size()};
  for (const RunFigures& run : runs) {
    // A run without a summary has neither of them.
    figures.learning_rate = run.learning_rate ? run.learning_rate : figures.learning_rate;
    figures.batch_size = run.batch_size ? run.batch_size : figures.batch_size;
    times.push_back(run.time_to_target);
    figures.reached += run.time_to_target ? 1 : 0;
    if (run.accuracy) {
      accuracies.push_back(*run.accuracy);
    }
    if (!run.devices.empty()) {
      sound.push_back(run);
    }
  }
  const auto median = [&](double RunFigures::*figure) {
    return median_over(sound, [&](const RunFigures& run) { return run.*figure; });
  };
  figures.time_to_target = spread_of(times);
  figures.accuracy = mean_of(accuracies);
  figures.tested = accuracies.size();
  figures.throughput = median(&RunFigures::throughput);
  figures.cluster_efficiency = median(&RunFigures::cluster_efficiency);
  if (!sound.empty()) {
    add_totals(figures, sound);
  }
  figures.median_staleness = median(&RunFigures::median_staleness);
  figures.p99_staleness = median(&RunFigures::p99_staleness);
  figures.most_staleness = median(&RunFigures::most_staleness);
  figures.devices = devices_over(sound);
  return figures;
}

std::optional<MinMax> range_of(const std::vector<DeviceFigures>& devices,
                               double DeviceFigures::*figure) {
  const auto [least, most] = std::minmax_element(
      devices.begin(), devices.end(),
      [&](const auto& one, const auto& other) { return one.*figure < other.*figure; });
  return devices.empty() ? std::nullopt : std::optional(MinMax{(*least).*figure, (*most).*figure});
}

void relate(std::vector<ContestantFigures>& contestants) {
  const ContestantFigures* base = named(contestants, baseline_scheme().name);
  const ContestantFigures* limit = named(contestants, "limit");
  for (ContestantFigures& one : contestants) {
    one.speed_up = quotient(base, one);
    one.distance_to_limit = quotient(limit, one);
  }
}

const RunFigures& best_of(const std::vector<RunFigures>& runs) {
  const auto better = [](const RunFigures& one, const RunFigures& other) {
    const double time = one.time_to_target.value_or(never);
    const double other_time = other.time_to_target.value_or(never);
    if (time != other_time) {
      return time < other_time;
    }
    const double accuracy = one.accuracy.value_or(-1);
    const double other_accuracy = other.accuracy.value_or(-1);
    return accuracy != other_accuracy ? accuracy > other_accuracy
                                      : one.learning_rate < other.learning_rate;
  };
  return *std::min_element(runs.begin(), runs.end(), better);
}

}  // namespace syncopate::cli
