#pragma once

namespace syncopate {

/// True under UBSan, which opens a pipe to check the type of an object: without free descriptors it
/// reports every object as one of a wrong type.
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
