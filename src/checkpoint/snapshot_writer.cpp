#include "checkpoint/snapshot_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr std::size_t checkpoints_kept = 3;

/// Small models may be tested many times a second, faster than that is done: they wait in memory, which
/// costs the training nothing. Of large ones two wait.
std::size_t most_waiting(const ModelLayout& layout) {
  constexpr std::size_t memory_bytes = std::size_t{64} << 20;
  const std::size_t bytes = sizeof(float) * (values_in(layout.params) + values_in(layout.buffers));
  return std::max<std::size_t>(2, memory_bytes / std::max<std::size_t>(1, bytes));
}

}  // namespace

SnapshotWriter::SnapshotWriter(World& world, MemberLink& link, Options options)
    : link_(link),
      options_(std::move(options)),
      most_waiting_(most_waiting(options_.layout)),
      wanted_(world.make_event()),
      kept_(world.make_event()) {
  if (options_.evaluator) {
    snapshots_.emplace(world.transport(), *options_.evaluator);
  }
  task_ = world.spawn("keeper", [this] { run(); });
}

SnapshotWriter::~SnapshotWriter() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wanted_->notify();
  task_.reset();
}

void SnapshotWriter::keep(Moment moment) {
  wait_while(&SnapshotWriter::is_full);
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(moment));
  }
  wanted_->notify();
}

void SnapshotWriter::finish() {
  wait_while(&SnapshotWriter::is_busy);
  if (snapshots_) {
    snapshots_->finish();
  }
}

void SnapshotWriter::wait_while(bool (SnapshotWriter::*condition)() const) {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      if (!(this->*condition)()) {
        return;
      }
    }
    kept_->wait(no_deadline);
  }
}

void SnapshotWriter::run() {
  try {
    keep_for_ever();
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
  kept_->notify();
}

void SnapshotWriter::keep_for_ever() {
  while (auto moment = next()) {
    keep_now(*moment);
    {
      const std::scoped_lock lock(mutex_);
      working_ = false;
    }
    kept_->notify();
  }
}

std::optional<SnapshotWriter::Moment> SnapshotWriter::next() {
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (ending_) {
        return std::nullopt;
      }
      if (!waiting_.empty()) {
        Moment moment = std::move(waiting_.front());
        waiting_.pop_front();
        working_ = true;
        return moment;
      }
    }
    wanted_->wait(no_deadline);
  }
}

void SnapshotWriter::keep_now(const Moment& moment) {
  const ModelSnapshot model = moment.model();
  if (moment.evaluate && snapshots_) {
    snapshots_->send(moment.stamp, model.params, model.buffers);
  }
  if (moment.checkpoint) {
    write_down(moment, model);
  }
}

void SnapshotWriter::write_down(const Moment& moment, const ModelSnapshot& model) {
  const auto path = options_.folder.checkpoints() / checkpoint_name(moment.progress.round);
  write_checkpoint(path, moment.progress, options_.network,
                   {.layout = options_.layout,
                    .params = model.params,
                    .buffers = model.buffers,
                    .states = model.states});
  prune_checkpoints(options_.folder.checkpoints(), checkpoints_kept);
  wire::Checkpoint written;
  written.set_path(path.string());
  written.set_round(moment.progress.round);
  link_.report(written);
}

}  // namespace syncopate
