#include "report/scalar_log.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// Statuses until the curves get sparser; see `Thinning`.
constexpr std::uint64_t many_statuses = 4096;

}  // namespace

ScalarLog::ScalarLog(Options options) : options_(std::move(options)), thinning_(many_statuses) {}

void ScalarLog::began(const View& view) {
  for (const Member& worker : view.workers()) {
    names_[worker.rank] = fmt::format("worker {} ({})", worker.rank.value, worker.device);
  }
}

void ScalarLog::evaluated(const EvaluationResult& result) {
  write(result.training_seconds, static_cast<double>(result.round),
        {{"evaluation/accuracy", result.accuracy}, {"evaluation/loss", result.loss}});
}

void ScalarLog::progressed(const MetricValues& job, const std::map<Rank, MetricValues>& workers) {
  const double round = job[Metric::rounds];
  if (round <= last_round_ || !thinning_.keeps_next()) {
    return;
  }
  last_round_ = round;
  thinning_.wrote(1);
  std::vector<Scalar> scalars{{"training/throughput", job[Metric::job_throughput]},
                              {"training/epoch", job[Metric::epochs]}};
  if (!std::isnan(job[Metric::loss])) {  // not known
    scalars.push_back({"training/loss", job[Metric::loss]});
  }
  for (const auto& [rank, metrics] : workers) {
    if (const double rate = metrics[Metric::learning_rate]; rate > 0 && rank == Rank{0}) {
      scalars.push_back({"training/learning_rate", rate});
    }
    scalars.push_back(
        {"computing_time_ratio/" + names_[rank], metrics[Metric::computing_time_ratio]});
  }
  write(job[Metric::job_seconds], round, scalars);
}

void ScalarLog::write(double training_seconds, double round, const std::vector<Scalar>& scalars) {
  began_at_ = began_at_.value_or(training_seconds);
  try {
    if (!file_) {
      file_.emplace(options_.folder.events(options_.wall_time), options_.wall_time);
    }
    file_->write(options_.wall_time + training_seconds - *began_at_,
                 static_cast<std::int64_t>(std::llround(round)), scalars);
  } catch (const DataError& error) {
    if (!std::exchange(reported_, true)) {
      options_.report(
          fmt::format("{}; training goes on, and TensorBoard lacks values", error.what()));
    }
  }
}

}  // namespace syncopate
