#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <string_view>

#include "base/printable.hpp"

namespace syncopate::log {
namespace {

spdlog::level::level_enum level_of(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::quiet: return spdlog::level::warn;
    case Verbosity::normal: return spdlog::level::info;
    case Verbosity::verbose: return spdlog::level::debug;
  }
  return spdlog::level::info;
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

std::unique_ptr<spdlog::formatter> formatter_of(const std::string& role) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern(role.empty() ? "%*" : "[%n] %*");
  return formatter;
}

}  // namespace

void set_up(const std::string& role, Verbosity verbosity) {
  auto logger =
      std::make_shared<spdlog::logger>(role, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(formatter_of(role));
  logger->set_level(level_of(verbosity));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace syncopate::log
