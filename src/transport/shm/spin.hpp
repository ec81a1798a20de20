#pragma once

#include "base/time.hpp"
#include "transport/steady_time.hpp"

namespace syncopate::shm {

/// Looks again and again, without lending the core to others, until `ready` says so (true) or the time
/// is over. To be used where that time is less than it takes to be woken.
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
