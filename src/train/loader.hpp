#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "data/augmentation.hpp"
#include "data/batch.hpp"
#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Prepares a worker's next batches in a background task while it computes on the current one.
///
/// Batches come in the feed's order from the start position, without end. They take the memory of
/// `ahead` + 1 batches, which is reused.
///
/// Threads: one task calls `next` and the destructor; it may be any task of the world's node.
class Loader {
 public:
  struct Options {
    const Dataset& dataset;  ///< its training set; must outlive the loader
    BatchFeed feed;
    FeedPosition start;
    std::size_t ahead = 3;                           ///< batches kept ready, at least 2
    Augmentation augmentation = Augmentation::none;  ///< drawn by pass and sample (`draw_change`)
    std::uint64_t seed = 0;                          ///< of the augmentation
    /// Called by the background task when it has prepared a batch, with the time that this took.
    std::function<void(TimePoint begun, TimePoint ended)> prepared = {};
  };

  Loader(World& world, Options options);
  /// Ends the background task and waits for its end.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; valid until the following call. Empty once the worker's part of the epoch is
  /// used up. Blocks only if preparing is slower than consuming.
  /// Errors: the error that ended the preparing task, after the batches that it had prepared; the
  ///         error that the world was cancelled with.
  const Batch& next();

 private:
  /// Batches by their index in `batches_`, first in, first out.
  using Queue = std::deque<std::size_t>;

  void run();
  void prepare_batches();
  void fill(FeedPosition position, Batch& batch);
  std::optional<std::size_t> take_empty();
  void put_empty(std::size_t batch);
  std::optional<std::size_t> take_ready();
  void put_ready(std::size_t batch);
  std::size_t wait_for_ready();
  bool ending();
  void rethrow_failure();

  const Clock& world_;
  Options options_;
  std::vector<Batch> batches_;
  std::optional<std::size_t> in_use_;  ///< by the caller of `next`

  Mutex mutex_;
  Queue empty_ GUARDED_BY(mutex_);
  Queue ready_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);

  std::unique_ptr<Event> became_empty_;
  std::unique_ptr<Event> became_ready_;
  std::unique_ptr<Task> task_;  ///< last: it ends before the members that it uses are destroyed
};

/// Cuts a loader's mini-batches to the sizes that steps take, in order.
class MicroBatcher {
 public:
  /// Whether mini-batches without samples, which fill up an epoch, are handed out or skipped.
  enum class Empty { kept, skipped };

  /// `loader` must outlive this; its first mini-batch is the one of `start`.
  MicroBatcher(Loader& loader, Empty empty, const DataPosition& start = {})
      : loader_(loader), empty_(empty), batch_(start.batch), skipped_(start.taken) {}

  /// The next `samples` of the feed, of one mini-batch or of several; 0: the rest of the current
  /// one, or the next one if there is no rest. A rest of less than half is filled up from the next
  /// one: a step of few samples is slow, and noisy in BatchNorm. Valid until the following call.
  /// Errors: those of the loader.
  const Batch& next(std::uint32_t samples);

  /// The position after the samples that were handed out last.
  DataPosition position() const;

 private:
  void begin_next();
  void append(std::size_t samples);
  std::size_t left() const { return whole_ ? whole_->samples() - taken_ : 0; }

  Loader& loader_;
  Empty empty_;
  const Batch* whole_ = nullptr;  ///< the current mini-batch
  std::uint64_t batch_;           ///< its index in the feed; at first, the index of the first one
  std::uint64_t skipped_;         ///< samples of the first one that earlier steps have taken
  std::size_t taken_ = 0;         ///< samples of the current one that steps have taken
  Batch part_;
};

}  // namespace syncopate
