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

/// Gets the lines that the command line would write to standard error, without their end.
///
/// Thread: any, one at a time.
/// Errors: it throws nothing, and calls nothing of this library.
using LogFunction = std::function<void(syncopate_log_level level, const std::string& line)>;

namespace detail {

/// Those of all calls: a thread may still be inside an earlier one, until the process ends.
inline std::list<LogFunction>& log_functions() {
  static auto* const functions = std::make_unique<std::list<LogFunction>>().release();
  return *functions;
}

inline void pass_line(void* function, syncopate_log_level level, const char* line) noexcept {
  (*static_cast<const LogFunction*>(function))(level, line);
}

}  // namespace detail

/// From now on `log` gets every line of `least` and above; an empty function: nobody does. Before
/// the first call warnings go to standard error. It stays alive until the end of the process.
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
