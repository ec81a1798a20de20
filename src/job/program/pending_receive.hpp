#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "job/program/pending.hpp"

namespace syncopate {

/// A receive of one message, which its program waits for when it likes.
///
/// Thread: any; one waits.
class PendingReceive final : public Pending {
 public:
  /// Receives until the given moment, and returns the sender; empty: nothing has come by then. It
  /// is called again until it has returned a rank or thrown, or the limit has passed: then it is
  /// destroyed, and with it what it holds of the receive.
  using Attempt = std::function<std::optional<Rank>(TimePoint)>;

  /// `limit`: how long it may take from now on. The clock outlives this.
  PendingReceive(const Clock& clock, Duration limit, Attempt attempt);

  bool done() override;
  /// Errors: also TimedOut; ConfigError, where another thread waits.
  void wait() override;
  bool wait_for(Duration limit) override;
  std::optional<Rank> source() override;

 private:
  /// False where another thread is in it.
  bool attempt(TimePoint deadline);
  /// Ends it without a message.
  void give_up();

  const Clock& clock_;
  const TimePoint until_;
  std::atomic<bool> waiting_ = false;
  std::atomic<bool> attempting_ = false;  ///< a thread uses `attempt_`
  Attempt attempt_;
  std::atomic<bool> done_ = false;  ///< after which the members below stay
  std::optional<Rank> source_;
  std::exception_ptr failure_;
};

}  // namespace syncopate
