#pragma once

#include <syncopate.h>

#include <functional>
#include <utility>

/// Interruption of a wait for other workers. C++17, over `syncopate.h`.
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

/// Makes each later call of this thread that waits for other workers, such as the constructor of a
/// `Job` or a step of a training, call `requested` repeatedly, in this thread, for example to check
/// for a signal. If it returns true, the call throws `Cancelled`; a call of a training then ends
/// the job for all workers. An empty function removes it.
///
/// Errors: `requested` must not throw, and must not call this library.
inline void set_interruption(std::function<bool()> requested) {
  detail::interruption() = std::move(requested);
  syncopate_set_interruption(detail::interruption() ? detail::ask_for_interruption : nullptr,
                             &detail::interruption());
}

}  // namespace v0
}  // namespace syncopate
