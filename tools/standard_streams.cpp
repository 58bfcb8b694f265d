#include "tools/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace hearth {

void open_standard_streams() {
  // A file that is opened gets the lowest number there is, so this goes from the lowest on. What
  // would be printed to a closed stream fails, as it did before: nothing can be written to a file
  // that is open for reading.
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
