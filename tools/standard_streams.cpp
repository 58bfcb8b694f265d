#include "tools/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace hearth {

void open_standard_streams() {
  // A new file gets the lowest free number, so the lowest stream goes first. Writing to a stream
  // that was closed still fails, because the file is open for reading only.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return;
}

Status finish_standard_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return {};
  return Error{
      ErrorKind::kIo,
      fmt::format("cannot write to standard output{}",
                  failed_before ? std::string() : fmt::format(": {}", std::strerror(errno)))};
}

}  // namespace hearth
