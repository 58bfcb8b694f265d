#include "ui/data/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace hearth {
namespace {

// Returns true once all contents are on disk.
bool write_file(const std::string& path, std::string_view contents) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  bool good = true;
  while (good && !contents.empty()) {
    const ssize_t written = ::write(file, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) contents.remove_prefix(static_cast<size_t>(written));
  }
  good = good && ::fsync(file) == 0;
  return ::close(file) == 0 && good;
}

}  // namespace

Status write_atomically(const std::filesystem::path& path, std::string_view contents) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  const std::string temporary = path.string() + ".new";
  if (!error && write_file(temporary, contents)) {
    std::filesystem::rename(temporary, path, error);
    if (!error) return {};
  }
  const std::string why = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(temporary, error);
  return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path.string(), why)};
}

}  // namespace hearth
