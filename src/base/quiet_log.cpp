#include "base/quiet_log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/printable.hpp"

namespace syncopate::log {
namespace {

Level level_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::warn) {
    return Level::warning;
  }
  return level == spdlog::level::info ? Level::info : Level::debug;
}

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
  }
  return spdlog::level::warn;
}

using Take = std::function<void(Level, const std::string&)>;

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

void use(spdlog::sink_ptr sink, spdlog::level::level_enum least) {
  auto logger = std::make_shared<spdlog::logger>("program", std::move(sink));
  logger->set_level(least);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace

void keep_quiet() {
  const auto logger = spdlog::default_logger();
  // spdlog's own first logger has no name and one sink, which writes to standard output.
  if (logger && logger->name().empty()) {
    use(std::make_shared<spdlog::sinks::null_sink_mt>(), spdlog::level::off);
  }
}

void send_to(Take take, Level least) {
  if (take) {
    use(std::make_shared<FunctionSink>(std::move(take)), level_of(least));
  } else {
    use(std::make_shared<spdlog::sinks::null_sink_mt>(), spdlog::level::off);
  }
}

}  // namespace syncopate::log
