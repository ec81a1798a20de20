#include "scheme/background_meeting.hpp"

#include <utility>

namespace syncopate {
namespace {

/// Says that a task has ended, however it does.
class Ending {
 public:
  explicit Ending(std::atomic<bool>& finished) : finished_(finished) {}
  ~Ending() { finished_ = true; }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  std::atomic<bool>& finished_;
};

}  // namespace

void BackgroundAveraging::begin(Round round, const StepInfo& info,
                                const Averaging::Values& values) {
  finished_ = false;
  task_ = averaging_.group().world().spawn("meeting", [this, round, info, values] {
    const Ending ending(finished_);
    result_ = averaging_.synchronize(round, info, values);
  });
}

Averaging::Result BackgroundAveraging::take() {
  const std::unique_ptr<Task> task = std::exchange(task_, nullptr);
  task->join();
  return *std::exchange(result_, std::nullopt);
}

}  // namespace syncopate
