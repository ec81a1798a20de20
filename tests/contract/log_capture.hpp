#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace syncopate::contract {

/// Takes the process's log for as long as it lives.
class LogCapture {
 public:
  LogCapture() : sink_(std::make_shared<Sink>()), before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", sink_));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Waits until a line with `part` has been written. False after two minutes.
  bool wait_for(const std::string& part) {
    std::unique_lock lock(sink_->guard);
    return sink_->changed.wait_for(lock, std::chrono::minutes(2),
                                   [&] { return sink_->text.find(part) != std::string::npos; });
  }

  std::string text() {
    const std::lock_guard lock(sink_->guard);
    return sink_->text;
  }

 private:
  struct Sink : spdlog::sinks::base_sink<std::mutex> {
    std::mutex guard;
    std::condition_variable changed;
    std::string text;

   protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
      const std::lock_guard lock(guard);
      text.append(message.payload.data(), message.payload.size());
      text += '\n';
      changed.notify_all();
    }
    void flush_() override {}
  };

  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace syncopate::contract
