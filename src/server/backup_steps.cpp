#include "server/backup_steps.hpp"

#include <algorithm>
#include <utility>

namespace syncopate {

BackupSteps::BackupSteps(ShardStore& store, const ConsistencyOptions& options)
    : store_(store),
      options_(options),
      admission_({.workers = store.workers(), .backups = options.backup_workers}) {}

std::vector<Rank> BackupSteps::asked(Rank worker, bool push, bool /*pull*/) {
  store_.desk(worker).dropped = false;
  if (!push) {
    return answer({worker});
  }
  if (options_.first_shard) {
    return decide(worker);
  }
  if (is_late(worker)) {
    return leave_out(worker);
  }
  waiting_.insert(worker);
  return close_if_whole();
}

std::vector<Rank> BackupSteps::gone(Rank worker) {
  gone_.insert(worker);
  if (options_.first_shard) {
    admission_.remove(worker);
  }
  return close_if_whole();
}

std::vector<Rank> BackupSteps::told(std::uint64_t step, std::span<const Rank> workers) {
  verdicts_[step] = {workers.begin(), workers.end()};
  return close_if_whole();
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

void BackupSteps::resumed() {
  admission_.set_step(Step{store_.version()});
}

std::vector<Rank> BackupSteps::decide(Rank worker) {
  const Step step{store_.desk(worker).read_version};
  if (admission_.arrived(worker, step) == BackupAdmission::Verdict::dropped) {
    return leave_out(worker);
  }
  waiting_.insert(worker);
  return close_if_whole();
}

std::vector<Rank> BackupSteps::close_if_whole() {
  return options_.first_shard ? close_as_decided() : close_as_told();
}

std::vector<Rank> BackupSteps::close_as_decided() {
  if (!admission_.closes()) {
    return {};
  }
  const std::vector<Rank> admitted = admission_.admitted();
  options_.tell(admission_.step().value, admitted);
  admission_.close();
  return close(admitted);
}

std::vector<Rank> BackupSteps::close_as_told() {
  const auto verdict = verdicts_.find(store_.version());
  if (verdict == verdicts_.end()) {
    return {};
  }
  std::vector<Rank> made_of;
  for (const Rank worker : verdict->second) {
    if (waiting_.contains(worker)) {
      made_of.push_back(worker);
    } else if (!gone_.contains(worker)) {
      return {};  // it is on its way
    }
  }
  verdicts_.erase(verdict);
  return close(made_of);
}

std::vector<Rank> BackupSteps::close(const std::vector<Rank>& made_of) {
  const bool too_late = store_.is_complete();
  store_.apply_mean(made_of);
  const std::set<Rank> waited = std::exchange(waiting_, {});
  for (const Rank worker : waited) {
    store_.desk(worker).dropped =
        too_late || std::find(made_of.begin(), made_of.end(), worker) == made_of.end();
  }
  return answer({waited.begin(), waited.end()});
}

std::vector<Rank> BackupSteps::answer(std::vector<Rank> workers) {
  for (const Rank worker : workers) {
    store_.read(worker);
  }
  return workers;
}

std::vector<Rank> BackupSteps::leave_out(Rank worker) {
  store_.desk(worker).dropped = true;
  return answer({worker});
}

bool BackupSteps::is_late(Rank worker) const {
  return store_.desk(worker).read_version < store_.version();
}

}  // namespace syncopate
