// Whether this build has a sanitizer, under which everything takes 10 to 30 times as long.
#pragma once

namespace hearth::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hearth::testing
