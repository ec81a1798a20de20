#include "base/quiet_log.hpp"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace syncopate::log {

void keep_quiet() {
  const auto logger = spdlog::default_logger();
  // spdlog's own first logger has no name and one sink, which writes to standard output.
  if (logger && logger->name().empty()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("quiet", std::make_shared<spdlog::sinks::null_sink_mt>()));
  }
}

}  // namespace syncopate::log
