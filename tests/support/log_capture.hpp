#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.hpp"

namespace syncopate {

/// Captures this process's log until the end of the scope, and calls `heard` for each line.
/// Afterwards the log goes nowhere.
class LogCapture {
 public:
  explicit LogCapture(std::function<void()> heard = [] {}) {
    log::send_to(
        [taken = taken_, heard = std::move(heard)](log::Level, const std::string& line) {
          const std::lock_guard lock(taken->guard);
          taken->text += line + '\n';
          taken->changed.notify_all();
          heard();
        },
        log::Level::info);
  }
  ~LogCapture() { log::send_to({}, log::Level::warning); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Waits until a line with `part` was written. Returns false after two minutes.
  bool wait_for(const std::string& part) {
    std::unique_lock lock(taken_->guard);
    return taken_->changed.wait_for(lock, std::chrono::minutes(2),
                                    [&] { return taken_->text.find(part) != std::string::npos; });
  }

  /// Returns the captured lines, each with its newline.
  std::string text() const {
    const std::lock_guard lock(taken_->guard);
    return taken_->text;
  }

 private:
  struct Taken {
    std::mutex guard;
    std::condition_variable changed;
    std::string text;
  };

  std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace syncopate
