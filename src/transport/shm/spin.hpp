#pragma once

#include "base/time.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::shm {

/// Polls `ready` without yielding the core. True once `ready` is; false after `limit`. For limits
/// shorter than a wake-up takes.
template <class Ready>
bool spin(const Ready& ready, Duration limit) {
  constexpr int looks_between_clocks = 16;
  const TimePoint end = steady_now() + limit;
  do {
    for (int look = 0; look < looks_between_clocks; ++look) {
      if (ready()) {
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (steady_now() < end);
  return false;
}

}  // namespace syncopate::shm
