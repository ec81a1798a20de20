#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/snapshot.hpp"
#include "membership/member_link.hpp"
#include "report/run_folder.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// A model that nobody changes any more.
struct ModelSnapshot {
  std::vector<float> params;
  std::vector<float> buffers;
  States states{};  ///< as in a `ModelView`
};

/// Hands models to the evaluator and writes them down, in a task of its own, beside the node that
/// leads the job: the worker of rank 0, or a parameter server's first shard. It meanwhile goes on.
///
/// Threads: one task calls; the background task is its own.
class SnapshotWriter {
 public:
  struct Options {
    std::optional<NodeId> evaluator;
    ModelLayout layout;
    RunFolder folder;
    std::string network;
  };

  /// One model to keep.
  struct Moment {
    SnapshotStamp stamp;
    Progress progress;
    bool evaluate = false;
    bool checkpoint = false;
    std::function<ModelSnapshot()> model;  ///< called once, in the keeper's task
  };

  SnapshotWriter(World& world, MemberLink& link, Options options);
  /// Ends the task, whatever it is doing, once the world is cancelled or `finish` has been called.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  /// Blocks while more models wait than there is memory for. Errors: what ended the task.
  void keep(Moment moment);
  /// Waits until all are kept, and tells the evaluator that no more will come. Errors: as `keep`.
  void finish();

 private:
  void run();
  void keep_for_ever();
  std::optional<Moment> next();
  void keep_now(const Moment& moment);
  void write_down(const Moment& moment, const ModelSnapshot& model);
  void wait_while(bool (SnapshotWriter::*condition)() const);
  bool is_full() const { return waiting_.size() >= most_waiting_; }
  bool is_busy() const { return !waiting_.empty() || working_; }

  MemberLink& link_;
  Options options_;
  std::size_t most_waiting_;
  std::optional<SnapshotSender> snapshots_;

  std::mutex mutex_;  // guards the members below
  std::deque<Moment> waiting_;
  bool working_ = false;
  bool ending_ = false;
  std::exception_ptr failure_;

  std::unique_ptr<Event> wanted_;  ///< something to keep, or the end
  std::unique_ptr<Event> kept_;
  std::unique_ptr<Task> task_;
};

}  // namespace syncopate
