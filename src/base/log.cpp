#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

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

}  // namespace

void set_up(const std::string& role, Verbosity verbosity) {
  auto logger =
      std::make_shared<spdlog::logger>(role, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(role.empty() ? "%v" : "[%n] %v");
  logger->set_level(level_of(verbosity));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace syncopate::log
