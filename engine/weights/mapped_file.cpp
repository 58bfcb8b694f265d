#include "engine/weights/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace hearth {
namespace {

Error last_error(const std::filesystem::path& path) {
  const int code = errno;
  return {code == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo,
          fmt::format("{}: {}", path.string(), std::strerror(code))};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe without a writer would block forever.
  MappedFile mapped(path,
                    Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
  if (!mapped.file_.is_open()) return last_error(path);
  struct stat status {};
  if (::fstat(mapped.file_.number(), &status) != 0) return last_error(path);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorKind::kInvalid, fmt::format("{}: not a regular file", path.string())};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return mapped;
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, mapped.file_.number(), 0);
  if (address == MAP_FAILED) return last_error(path);
  mapped.bytes_ = {static_cast<const std::byte*>(address), size};
  mapped.guard_ = PageGuard(mapped.bytes_);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = PageGuard();
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status MappedFile::check() const {
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) return last_error(path_);
  // Within its last page, a file that became shorter reads as zeros without a fault.
  if (static_cast<std::size_t>(status.st_size) < bytes_.size())
    return Error{
        ErrorKind::kIo,
        fmt::format("{}: the file became shorter while it was read: {} bytes instead of {}",
                    path_.string(), status.st_size, bytes_.size())};
  if (guard_.damaged())
    return Error{ErrorKind::kIo,
                 fmt::format("{}: a part of the file could not be read: the disk fails, or another "
                             "program changed the file meanwhile",
                             path_.string())};
  return {};
}

Error in_file(const std::filesystem::path& path, const Error& error) {
  return {error.kind, path.string() + ": " + error.message};
}

}  // namespace hearth
