#pragma once

#include <nlohmann/json.hpp>

#include "base/mutex.hpp"
#include "job/launch/line_writer.hpp"

namespace syncopate {

/// The coordinator's end of the pipe of its events: one line of JSON each, for the supervisor.
///
/// A suspended supervisor must not delay the job. So status events are dropped while it is behind,
/// and all others are queued until it reads again.
///
/// Thread: any, because another thread than the coordinator's may emit the last event.
class EventPipe {
 public:
  /// Borrows the descriptor.
  explicit EventPipe(int descriptor) : lines_(descriptor) {}
  ~EventPipe() { finish(); }
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  void emit(const nlohmann::ordered_json& event);
  /// Waits for the supervisor, but not for long: events in the pipe are not lost.
  void finish();

 private:
  Mutex mutex_;
  LineWriter lines_ GUARDED_BY(mutex_);
};

}  // namespace syncopate
