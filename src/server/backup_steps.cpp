#include "server/backup_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

BackupSteps::BackupSteps(ShardStore& store, const ConsistencyOptions& options)
    : store_(store),
      options_(options),
      admission_({.workers = store.workers(), .backups = options.backup_workers}) {}

std::vector<Rank> BackupSteps::on_request(Rank worker, bool push, bool /*pull*/) {
  store_.slot(worker).dropped = false;
  if (!push) {
    return answer({worker});
  }
  if (options_.first_shard) {
    return decide(worker);
  }
  if (is_late(worker)) {
    return reject(worker);
  }
  waiting_.insert(worker);
  return close_if_complete();
}

std::vector<Rank> BackupSteps::on_gone(Rank worker) {
  gone_.insert(worker);
  if (options_.first_shard) {
    admission_.remove(worker);
  }
  return close_if_complete();
}

void BackupSteps::on_return(Rank worker) {
  gone_.erase(worker);
  if (options_.first_shard) {
    admission_.restore(worker);
  }
}

std::vector<Rank> BackupSteps::on_admitted(std::uint64_t step, std::span<const Rank> workers) {
  verdicts_[step] = {workers.begin(), workers.end()};
  return close_if_complete();
}

std::vector<Rank> BackupSteps::waited_for(Rank /*worker*/) const {
  std::vector<Rank> missing;
  for (std::uint32_t rank = 0; rank < store_.workers(); ++rank) {
    if (!waiting_.contains(Rank{rank}) && !gone_.contains(Rank{rank})) {
      missing.push_back(Rank{rank});
    }
  }
  return missing;
}

void BackupSteps::on_resumed() {
  admission_.set_step(Step{store_.version()});
}

std::vector<Rank> BackupSteps::decide(Rank worker) {
  const Step step{store_.slot(worker).read_version};
  if (admission_.arrived(worker, step) == BackupAdmission::Verdict::dropped) {
    return reject(worker);
  }
  waiting_.insert(worker);
  return close_if_complete();
}

std::vector<Rank> BackupSteps::close_if_complete() {
  return options_.first_shard ? close_as_decided() : close_as_admitted();
}

std::vector<Rank> BackupSteps::close_as_decided() {
  if (!admission_.closes()) {
    return {};
  }
  const std::vector<Rank> admitted = admission_.admitted();
  options_.notify_shards(admission_.step().value, admitted);
  admission_.close();
  return close(admitted);
}

std::vector<Rank> BackupSteps::close_as_admitted() {
  const auto verdict = verdicts_.find(store_.version());
  if (verdict == verdicts_.end()) {
    return {};
  }
  std::vector<Rank> admitted;
  for (const Rank worker : verdict->second) {
    if (waiting_.contains(worker)) {
      admitted.push_back(worker);
    } else if (!gone_.contains(worker)) {
      return {};  // its gradient is on its way
    }
  }
  verdicts_.erase(verdict);
  return close(admitted);
}

std::vector<Rank> BackupSteps::close(const std::vector<Rank>& admitted) {
  const bool too_late = store_.is_complete();
  store_.apply_mean(admitted);
  const std::set<Rank> waited = std::exchange(waiting_, {});
  for (const Rank worker : waited) {
    store_.slot(worker).dropped =
        too_late || std::find(admitted.begin(), admitted.end(), worker) == admitted.end();
  }
  return answer({waited.begin(), waited.end()});
}

std::vector<Rank> BackupSteps::answer(std::vector<Rank> workers) {
  for (const Rank worker : workers) {
    store_.read(worker);
  }
  return workers;
}

std::vector<Rank> BackupSteps::reject(Rank worker) {
  store_.slot(worker).dropped = true;
  return answer({worker});
}

bool BackupSteps::is_late(Rank worker) const {
  return store_.slot(worker).read_version < store_.version();
}

}  // namespace syncopate
