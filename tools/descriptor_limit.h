// Every connection needs a file descriptor, and shells allow 1,024.
#pragma once

#include <algorithm>

#include <sys/resource.h>

namespace hearth {

// Raises this process's limit to what a server or a client with thousands of connections needs, as
// far as the system lets it.
inline void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 8192;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace hearth
