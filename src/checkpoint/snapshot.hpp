#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "checkpoint/checkpoint.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"
#include "runtime/world.hpp"
#include "scheme/replica.hpp"

namespace syncopate {

/// The moment at which a snapshot was taken.
struct SnapshotStamp {
  std::uint64_t round = 0;
  std::uint64_t samples = 0;
  double epoch = 0;
  double training_seconds = 0;
};

/// Sends snapshots of the model to the evaluator: from the worker of rank 0, or from a parameter
/// server's first shard.
///
/// The evaluator sends a credit for one snapshot at its start, and one more after each that it has
/// received. So at most one waits behind the one under test, however slow testing is.
class SnapshotSender {
 public:
  SnapshotSender(Transport& transport, MemberLink& link, NodeId evaluator)
      : transport_(transport), link_(link), evaluator_(evaluator) {}

  /// Blocks until the evaluator has sent a credit and the snapshot has been sent. The caller
  /// subtracts this time from the training clock. Errors: those of the transport.
  void send(const SnapshotStamp& stamp, std::span<const float> params,
            std::span<const float> buffers);
  /// Announces the end to the evaluator.
  void finish();

 private:
  Transport& transport_;
  MemberLink& link_;
  NodeId evaluator_;
};

/// Receives snapshots, in the evaluator.
class SnapshotReceiver {
 public:
  SnapshotReceiver(Transport& transport, MemberLink& link, NodeId sender);

  /// Waits for the next snapshot and loads it into `replica`; empty at the end.
  /// Errors: ProtocolError, when it is of another size than the replica; those of the transport.
  std::optional<SnapshotStamp> receive(Replica& replica);

 private:
  void grant();

  Transport& transport_;
  MemberLink& link_;
  NodeId sender_;
};

/// A copy of a model.
struct ModelSnapshot {
  std::vector<float> params;
  std::vector<float> buffers;
  States states{};  ///< by the names of a `ModelView`
};

/// Sends models to the evaluator and writes checkpoints, in a task of its own, while the node that
/// keeps the model continues: the worker of rank 0, or a parameter server's first shard. A model
/// whose parameters are not finite is reported, and not written.
///
/// While the job has no evaluator, or after it was lost in the middle of a snapshot, the newest
/// model to be tested waits for the next evaluator. Earlier ones are not tested.
///
/// Threads: one task calls; the background task is its own.
class SnapshotWriter {
 public:
  struct Options {
    ModelLayout layout;
    RunFolder folder;
    std::string network;
  };

  /// One model to send or to write.
  struct Job {
    SnapshotStamp stamp;
    TrainingProgress progress;
    bool evaluate = false;
    bool checkpoint = false;
    std::function<ModelSnapshot()> model;  ///< called once, in the writer's task
  };

  SnapshotWriter(World& world, MemberLink& link, Options options);
  /// Ends the task once the world is cancelled or `finish` has been called.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// Blocks while too many models wait in memory. Errors: the error that ended the task.
  void save(Job job);
  /// Waits until all are done, and announces the end to the evaluator if there is one. Errors: as
  /// `save`.
  void finish();

 private:
  void run();
  void work();
  std::optional<Job> next();
  void carry_out(const Job& job);
  bool send_for_test(const Job& job, const ModelSnapshot& model);
  void keep_for_test(const Job& job, ModelSnapshot model);
  void write(const Job& job, const ModelSnapshot& model);
  void skip(std::uint64_t round);
  void wait_while(bool (SnapshotWriter::*condition)() const);
  bool is_full() const REQUIRES(mutex_) { return waiting_.size() >= max_waiting_; }
  bool is_busy() const REQUIRES(mutex_) {
    return !waiting_.empty() || working_ || (untested_ && evaluator());
  }
  std::optional<NodeId> evaluator() const REQUIRES(mutex_);

  Transport& transport_;
  MemberLink& link_;
  Options options_;
  std::size_t max_waiting_;

  Mutex mutex_;
  std::deque<Job> waiting_ GUARDED_BY(mutex_);
  std::optional<Job> untested_ GUARDED_BY(mutex_);  ///< waits for an evaluator
  std::optional<NodeId> lost_ GUARDED_BY(mutex_);   ///< an evaluator, perhaps not yet dropped
  bool working_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);

  std::unique_ptr<Event> wanted_;  ///< a model or an evaluator waits, or the end has come
  std::unique_ptr<Event> saved_;
  std::unique_ptr<Task> task_;
};

}  // namespace syncopate
