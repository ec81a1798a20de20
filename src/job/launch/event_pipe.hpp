#pragma once

#include <nlohmann/json.hpp>

#include "base/mutex.hpp"
#include "job/launch/line_writer.hpp"

namespace syncopate {

/// The coordinator's end of the pipe of its events: one line of JSON each, for the supervisor.
///
/// A supervisor that is suspended must not hold the job. So status events are dropped while it is
/// behind, and all others are queued until it returns.
///
/// Thread: any, since the last event may be one of another thread than the coordinator's.
class EventPipe {
 public:
  /// Borrows the descriptor.
  explicit EventPipe(int descriptor) : lines_(descriptor) {}
  ~EventPipe() { finish(); }
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  void emit(const nlohmann::ordered_json& event);
  /// Waits for the supervisor, but not for long: the pipe keeps what it holds.
  void finish();

 private:
  Mutex mutex_;
  LineWriter lines_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
