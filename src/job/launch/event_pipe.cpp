#include "job/launch/event_pipe.hpp"

#include <string>

#include "telemetry/json_lines.hpp"

namespace syncopate {
namespace {

constexpr Duration patience = std::chrono::seconds(3);

}  // namespace

void EventPipe::finish() {
  const MutexLock lock(mutex_);
  lines_.finish(patience);
}

void EventPipe::emit(const nlohmann::ordered_json& event) {
  const std::string line = json_text(event) + "\n";
  const MutexLock lock(mutex_);
  if (event.value("event", "") == "status") {
    lines_.offer(line);
  } else {
    lines_.write(line);
  }
}

}  // namespace syncopate
