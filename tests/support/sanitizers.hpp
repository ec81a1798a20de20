#pragma once

namespace syncopate {

/// UBSan checks the type of an object by a pipe that it opens: without descriptors it takes every
/// object for a wrong one.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
inline constexpr bool sanitizer_needs_descriptors = true;
#else
inline constexpr bool sanitizer_needs_descriptors = false;
#endif
#else
inline constexpr bool sanitizer_needs_descriptors = false;
#endif

}  // namespace syncopate
