#pragma once

#include <syncopate.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

/// The log lines of the library. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

/// Receives the lines that the command line would write to standard error, without line ends.
///
/// Thread: any, one call at a time.
/// Errors: it must not throw, and must not call this library.
using LogFunction = std::function<void(syncopate_log_level level, const std::string& line)>;

namespace detail {

/// The functions of all calls of `set_log`. They live until the process ends, because a thread may
/// still be inside an earlier one.
inline std::list<LogFunction>& log_functions() {
  static auto* const functions = std::make_unique<std::list<LogFunction>>().release();
  return *functions;
}

inline void pass_line(void* function, syncopate_log_level level, const char* line) noexcept {
  (*static_cast<const LogFunction*>(function))(level, line);
}

}  // namespace detail

/// Passes every later line of level `least` or above to `log`; an empty function discards all
/// lines. Before the first call, warnings go to standard error. `log` lives until the end of the
/// process.
///
/// Thread: one.
inline void set_log(LogFunction log, syncopate_log_level least = SYNCOPATE_LOG_INFO) {
  if (!log) {
    syncopate_set_log(nullptr, nullptr, least);
    return;
  }
  detail::log_functions().push_back(std::move(log));
  syncopate_set_log(detail::pass_line, &detail::log_functions().back(), least);
}

}  // namespace v0
}  // namespace syncopate
