#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/printable.hpp"

namespace syncopate::log {
namespace {

std::atomic<spdlog::logger*> logger_in_use = nullptr;

/// Loggers are never destroyed: a thread may be inside an earlier one until the process ends.
spdlog::logger* kept(std::unique_ptr<spdlog::logger> logger) {
  static auto* const all =
      std::make_unique<std::vector<std::unique_ptr<spdlog::logger>>>().release();
  static Mutex guard;
  const MutexLock lock(guard);
  return all->emplace_back(std::move(logger)).get();
}

/// The message without control characters: names, hosts and reasons in it may come from an
/// unknown process, which could act on the terminal.
class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& into) override {
    const std::string text =
        printable_lines(std::string_view(message.payload.data(), message.payload.size()));
    into.append(text.data(), text.data() + text.size());
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

using Take = std::function<void(Level, const std::string&)>;

Level level_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::warn) {
    return Level::warning;
  }
  return level == spdlog::level::info ? Level::info : Level::debug;
}

/// Passes each message to a function, under the sink's lock.
class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(Take take) : take_(std::move(take)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    take_(level_of(message.level), printable_lines(text));
  }
  void flush_() override {}

  Take take_;
};

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
  }
  return spdlog::level::warn;
}

spdlog::level::level_enum level_of(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::quiet: return spdlog::level::warn;
    case Verbosity::normal: return spdlog::level::info;
    case Verbosity::verbose: return spdlog::level::debug;
  }
  return spdlog::level::info;
}

std::unique_ptr<spdlog::logger> logger_of(spdlog::sink_ptr sink, spdlog::level::level_enum least) {
  auto logger = std::make_unique<spdlog::logger>("syncopate", std::move(sink));
  logger->set_level(least);
  return logger;
}

/// Makes a logger to standard error; in `pattern`, %* is the message.
std::unique_ptr<spdlog::logger> to_standard_error(const std::string& pattern,
                                                  spdlog::level::level_enum least) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern(pattern);
  auto logger = logger_of(std::make_shared<spdlog::sinks::stderr_sink_mt>(), least);
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

/// The logger that gets the lines.
spdlog::logger& current() {
  if (spdlog::logger* const chosen = logger_in_use) {
    return *chosen;
  }
  static spdlog::logger* const first =
      kept(to_standard_error("syncopate: %*", spdlog::level::warn));
  return *first;
}

}  // namespace

void set_up(Verbosity verbosity) {
  logger_in_use = kept(to_standard_error("%*", level_of(verbosity)));
}

void send_to(Take take, Level least) {
  const auto level = take ? level_of(least) : spdlog::level::off;
  logger_in_use = kept(logger_of(std::make_shared<FunctionSink>(std::move(take)), level));
}

bool should_log(Level level) {
  return current().should_log(level_of(level));
}

void write(Level level, fmt::string_view text, fmt::format_args values) {
  current().log(level_of(level), fmt::vformat(text, values));
}

}  // namespace syncopate::log
