#include "server/backup_admission.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.hpp"

namespace syncopate {

BackupAdmission::BackupAdmission(const Options& options)
    : needed_(options.workers - options.backups), workers_(options.workers) {
  if (options.backups >= options.workers) {
    throw ConfigError(fmt::format("{} backup workers of {} workers: expected fewer than workers",
                                  options.backups, options.workers));
  }
}

BackupAdmission::Verdict BackupAdmission::arrived(Rank worker, Step step) {
  expect_possible(worker, step);
  Worker& from = workers_[worker.value];
  if (step < step_ || !from.present || closes()) {
    ++dropped_;
    return Verdict::dropped;
  }
  from.admitted = true;
  return Verdict::admitted;
}

void BackupAdmission::expect_possible(Rank worker, Step step) const {
  if (worker.value >= workers_.size()) {
    throw ProtocolError(fmt::format("gradient of worker {}: expected one of {} workers",
                                    worker.value, workers_.size()));
  }
  if (step > step_) {
    throw ProtocolError(fmt::format("gradient of step {} from worker {}: step {} is open",
                                    step.value, worker.value, step_.value));
  }
  if (step == step_ && workers_[worker.value].admitted) {
    throw ProtocolError(
        fmt::format("second gradient of step {} from worker {}", step.value, worker.value));
  }
}

bool BackupAdmission::closes() const {
  const auto count = admitted().size();
  return count > 0 && count >= quota();
}

std::vector<Rank> BackupAdmission::admitted() const {
  std::vector<Rank> ranks;
  for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (workers_[rank].admitted) ranks.push_back(Rank{rank});
  }
  return ranks;
}

void BackupAdmission::close() {
  if (!closes()) {
    throw InternalError(fmt::format("step {} closed with {} of {} gradients", step_.value,
                                    admitted().size(), quota()));
  }
  set_step(Step{step_.value + 1});
}

void BackupAdmission::remove(Rank worker) {
  workers_.at(worker.value).present = false;
}

void BackupAdmission::set_step(Step step) {
  step_ = step;
  for (Worker& worker : workers_) worker.admitted = false;
}

std::uint32_t BackupAdmission::quota() const {
  const auto can_count = std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return worker.present || worker.admitted;
  });
  return std::min(needed_, static_cast<std::uint32_t>(can_count));
}

}  // namespace syncopate
