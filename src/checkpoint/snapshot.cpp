#include "checkpoint/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Wire format of a stamp: u64 round, u64 samples, f64 epoch, f64 training seconds.
constexpr std::size_t stamp_bytes = 32;

/// An empty announcement ends the sequence. The waits here have no deadline of their own: the
/// coordinator notices a dead or silent peer, and then cancels the node.
std::vector<std::byte> announcement(const SnapshotStamp& stamp) {
  std::vector<std::byte> bytes(stamp_bytes);
  ByteWriter(bytes)
      .put(stamp.round)
      .put(stamp.samples)
      .put(stamp.epoch)
      .put(stamp.training_seconds);
  return bytes;
}

SnapshotStamp unpack(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  SnapshotStamp stamp;
  stamp.round = reader.take<std::uint64_t>();
  stamp.samples = reader.take<std::uint64_t>();
  stamp.epoch = reader.take<double>();
  stamp.training_seconds = reader.take<double>();
  return stamp;
}

constexpr std::size_t checkpoints_kept = 3;

/// Snapshots of a small model may come faster than the evaluator tests them: they wait in memory,
/// at no cost to the training. Of a large model only two wait.
std::size_t max_waiting(const ModelLayout& layout) {
  constexpr std::size_t memory_bytes = std::size_t{64} << 20;
  const std::size_t bytes = sizeof(float) * (values_in(layout.params) + values_in(layout.buffers));
  return std::max<std::size_t>(2, memory_bytes / std::max<std::size_t>(1, bytes));
}

}  // namespace

void SnapshotSender::send(const SnapshotStamp& stamp, std::span<const float> params,
                          std::span<const float> buffers) {
  link_.receive_standing_by(evaluator_, tags::snapshot_credit);
  transport_.post(evaluator_, tags::snapshot, announcement(stamp));
  syncopate::send(transport_, evaluator_, tags::snapshot, std::as_bytes(params), no_deadline);
  syncopate::send(transport_, evaluator_, tags::snapshot, std::as_bytes(buffers), no_deadline);
}

void SnapshotSender::finish() {
  transport_.post(evaluator_, tags::snapshot, {});
}

SnapshotReceiver::SnapshotReceiver(Transport& transport, MemberLink& link, NodeId sender)
    : transport_(transport), link_(link), sender_(sender) {
  grant();
}

std::optional<SnapshotStamp> SnapshotReceiver::receive(Replica& replica) {
  const Message message = link_.receive_standing_by(sender_, tags::snapshot);
  if (message.payload.empty()) {
    return std::nullopt;
  }
  if (message.payload.size() != stamp_bytes) {
    throw ProtocolError("the announcement of a snapshot has another size than expected");
  }
  const SnapshotStamp stamp = unpack(message.payload);
  for (const ReplicaVector which : {ReplicaVector::params, ReplicaVector::buffers}) {
    link_.receive_standing_by(sender_, tags::snapshot, std::as_writable_bytes(replica.view(which)));
    replica.store(which);
  }
  grant();
  return stamp;
}

void SnapshotReceiver::grant() {
  transport_.post(sender_, tags::snapshot_credit, {});
}

SnapshotWriter::SnapshotWriter(World& world, MemberLink& link, Options options)
    : transport_(world.transport()),
      link_(link),
      options_(std::move(options)),
      max_waiting_(max_waiting(options_.layout)),
      wanted_(world.make_event()),
      saved_(world.make_event()) {
  link_.on(wire::FromCoordinator::kReplaced,
           [this](const wire::FromCoordinator&) { wanted_->notify(); });
  task_ = world.spawn("snapshots", [this] { run(); });
}

SnapshotWriter::~SnapshotWriter() {
  link_.on(wire::FromCoordinator::kReplaced, {});
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wanted_->notify();
  task_.reset();
}

void SnapshotWriter::save(Job job) {
  wait_while(&SnapshotWriter::is_full);
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  wanted_->notify();
}

void SnapshotWriter::finish() {
  wait_while(&SnapshotWriter::is_busy);
  const MutexLock lock(mutex_);
  if (const auto receiver = evaluator()) {
    SnapshotSender(transport_, link_, *receiver).finish();
  }
}

/// The evaluator to which snapshots can be sent.
std::optional<NodeId> SnapshotWriter::evaluator() const {
  const auto present = link_.evaluator();
  return present == lost_ ? std::nullopt : present;
}

void SnapshotWriter::wait_while(bool (SnapshotWriter::*condition)() const) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (failure_) {
        std::rethrow_exception(failure_);
      }
      if (!(this->*condition)()) {
        return;
      }
    }
    saved_->wait(no_deadline);
  }
}

void SnapshotWriter::run() {
  try {
    work();
  } catch (...) {
    const MutexLock lock(mutex_);
    failure_ = std::current_exception();
  }
  saved_->notify();
}

void SnapshotWriter::work() {
  while (auto job = next()) {
    carry_out(*job);
    {
      const MutexLock lock(mutex_);
      working_ = false;
    }
    saved_->notify();
  }
}

std::optional<SnapshotWriter::Job> SnapshotWriter::next() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (ending_) {
        return std::nullopt;
      }
      if (!waiting_.empty()) {
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        working_ = true;
        return job;
      }
      if (untested_ && evaluator()) {
        working_ = true;
        return std::exchange(untested_, std::nullopt);
      }
    }
    saved_->notify();  // also where an evaluator has come and gone again
    wanted_->wait(no_deadline);
  }
}

void SnapshotWriter::carry_out(const Job& job) {
  ModelSnapshot model = job.model();
  const bool sent = !job.evaluate || send_for_test(job, model);
  if (job.checkpoint) {
    write(job, model);
  }
  if (!sent) {
    keep_for_test(job, std::move(model));
  }
}

void SnapshotWriter::keep_for_test(const Job& job, ModelSnapshot model) {
  model.states.clear();  // no test reads them
  Job kept{.stamp = job.stamp,
           .progress = job.progress,
           .evaluate = true,
           .model = [model = std::move(model)]() mutable { return std::move(model); }};
  const MutexLock lock(mutex_);
  untested_ = std::move(kept);
}

/// Reports that the checkpoint of `round` is not written, and which one remains: a model with
/// values that are not finite must not replace one from which training can continue.
void SnapshotWriter::skip(std::uint64_t round) {
  wire::Checkpoint kept;
  kept.set_skipped_round(round);
  if (const auto path = latest_checkpoint(options_.folder.checkpoints())) {
    kept.set_path(path->string());
    kept.set_round(round_of(*path));
  }
  link_.report(kept);
}

/// Returns false if there is no evaluator, or if it is lost meanwhile. The coordinator reports the
/// loss; checkpoints do not depend on it.
bool SnapshotWriter::send_for_test(const Job& job, const ModelSnapshot& model) {
  const auto receiver = [this] {
    const MutexLock lock(mutex_);
    untested_.reset();  // an older one
    return evaluator();
  }();
  if (!receiver) {
    return false;
  }
  try {
    SnapshotSender(transport_, link_, *receiver).send(job.stamp, model.params, model.buffers);
    return true;
  } catch (const PeerLost& loss) {
    if (loss.peer() != *receiver) {
      throw;
    }
  }
  const MutexLock lock(mutex_);
  lost_ = receiver;
  return false;
}

void SnapshotWriter::write(const Job& job, const ModelSnapshot& model) {
  if (!all_finite(model.params)) {
    skip(job.progress.round);
    return;
  }
  const auto path = options_.folder.checkpoints() / checkpoint_name(job.progress.round);
  write_checkpoint(path, job.progress, options_.network,
                   {.layout = options_.layout,
                    .params = model.params,
                    .buffers = model.buffers,
                    .states = model.states});
  prune_checkpoints(options_.folder.checkpoints(), checkpoints_kept);
  wire::Checkpoint written;
  written.set_path(path.string());
  written.set_round(job.progress.round);
  link_.report(written);
}

}  // namespace syncopate
