#pragma once

#include <functional>

#include "base/time.hpp"

namespace syncopate::mail {

/// Lets the thread that waits do the engine's work, until `done` says so or for as long as the engine likes, at most until
/// the deadline.
using ProgressFunction = std::function<void(const std::function<bool()>& done, TimePoint deadline)>;

}  // namespace syncopate::mail
