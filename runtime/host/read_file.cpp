#include "runtime/host/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/host/descriptor.h"

namespace hearth {
namespace {

std::string limit_text(uint64_t bytes) {
  constexpr uint64_t kMebibyte = 1 << 20;
  return bytes % kMebibyte == 0 ? fmt::format("{} MiB", bytes / kMebibyte)
                                : fmt::format("{} bytes", bytes);
}

}  // namespace

Result<std::string> read_descriptor(int descriptor, const std::string& name, uint64_t most_bytes) {
  constexpr uint64_t kFirstBytes = 64 << 10;
  std::string text;
  size_t used = 0;
  while (true) {
    // One byte more than the limit shows that there is more.
    if (used == text.size())
      text.resize(std::min<uint64_t>(std::max<uint64_t>(2 * used, kFirstBytes), most_bytes + 1));
    const ssize_t bytes = ::read(descriptor, text.data() + used, text.size() - used);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0)
      return Error{ErrorKind::kIo, fmt::format("cannot read {}: {}", name, std::strerror(errno))};
    used += static_cast<size_t>(bytes);
    if (used > most_bytes)
      return Error{ErrorKind::kInvalid, fmt::format("{} is too large: at most {} are read", name,
                                                    limit_text(most_bytes))};
    if (bytes > 0) continue;
    text.resize(used);
    text.shrink_to_fit();
    return text;
  }
}

Result<std::string> read_file(const std::filesystem::path& path, const ReadFileOptions& options) {
  const std::string name = path.string();
  const int wait = options.regular_only ? O_NONBLOCK : 0;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | wait));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0)
    return Error{errno == ENOENT || errno == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo,
                 fmt::format("cannot open {}: {}", name, std::strerror(errno))};
  if (S_ISDIR(status.st_mode))
    return Error{ErrorKind::kInvalid, fmt::format("{} is a folder, not a file", name)};
  if (options.regular_only && !S_ISREG(status.st_mode))
    return Error{ErrorKind::kInvalid, fmt::format("{} is not a regular file", name)};
  return read_descriptor(file.number(), name, options.most_bytes);
}

}  // namespace hearth
