#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace syncopate::log {

/// How much a process logs on standard error.
enum class Verbosity { quiet, normal, verbose };

/// Sets up this process's log: lines on standard error, `[role] message`, warnings marked.
/// Called once, at the start of a process; the role may be empty.
void set_up(const std::string& role, Verbosity verbosity);

using spdlog::debug;
using spdlog::info;
using spdlog::warn;

}  // namespace syncopate::log
