#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "data/batch_feed.hpp"
#include "data/dataset.hpp"
#include "runtime/world.hpp"

namespace syncopate {

/// Prepares a worker's next batches in a background task while it computes on the current one.
///
/// Batches come in the feed's order from the start position, without end. Memory is that of
/// `ahead` + 1 batches, reused.
///
/// Threads: one task calls `next` and destroys; it may be any task of the world's node.
class Loader {
 public:
  struct Options {
    const Dataset& dataset;  ///< its training set; must outlive the loader
    BatchFeed feed;
    FeedPosition start;
    std::size_t ahead = 3;  ///< batches kept ready, at least 2
  };

  Loader(World& world, Options options);
  /// Ends the background task, whatever it is doing, and waits for its end.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; valid until the following call. Empty where the worker's part of the epoch is
  /// used up. Blocks only where preparing is slower than consuming.
  /// Errors: what ended the preparing task, after what it had prepared before; what the world was
  ///         cancelled with.
  const Batch& next();

 private:
  /// Batches by their index in `batches_`, first in, first out.
  using Queue = std::deque<std::size_t>;

  void run();
  void prepare_for_ever();
  std::optional<std::size_t> take(Queue& queue);
  void put(Queue& queue, std::size_t batch, Event& changed);
  std::size_t wait_for_ready();
  bool ending();
  void rethrow_failure();

  Options options_;
  std::vector<Batch> batches_;
  std::optional<std::size_t> lent_;  ///< to the caller of `next`

  std::mutex mutex_;  ///< of the following four
  Queue empty_;
  Queue ready_;
  bool ending_ = false;
  std::exception_ptr failure_;

  std::unique_ptr<Event> became_empty_;
  std::unique_ptr<Event> became_ready_;
  std::unique_ptr<Task> task_;  ///< last: it ends before what it uses
};

}  // namespace syncopate
