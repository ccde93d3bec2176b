// Whether the program is built with a sanitizer of addresses or threads: they reserve terabytes of
// addresses and keep what was freed, so how much memory a process has says nothing about us.
#pragma once

#if defined(__has_feature)
#define REPRISE_HAS_FEATURE(x) __has_feature(x)
#else
#define REPRISE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    REPRISE_HAS_FEATURE(address_sanitizer) || REPRISE_HAS_FEATURE(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
