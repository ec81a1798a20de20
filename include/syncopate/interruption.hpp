#pragma once

#include <syncopate.h>

#include <functional>
#include <utility>

/// How a program ends a wait for the other workers. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

namespace detail {

inline std::function<bool()>& interruption() {
  thread_local std::function<bool()> requested;
  return requested;
}

inline int ask_for_interruption(void* function) noexcept {
  return (*static_cast<const std::function<bool()>*>(function))() ? 1 : 0;
}

}  // namespace detail

/// From now on a call of this thread that waits for other workers, such as the constructor of a
/// `Job` or a step of a training, asks `requested` now and then, in this thread, for example
/// whether a signal has come. If it returns true, the call throws `Cancelled`; one of a training
/// ends the job for all workers. An empty function: nothing is asked, as at the beginning.
///
/// Errors: `requested` throws nothing, and calls nothing of this library.
inline void set_interruption(std::function<bool()> requested) {
  detail::interruption() = std::move(requested);
  syncopate_set_interruption(detail::interruption() ? detail::ask_for_interruption : nullptr,
                             &detail::interruption());
}

}  // namespace v0
}  // namespace syncopate
