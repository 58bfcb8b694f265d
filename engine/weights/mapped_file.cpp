#include "engine/weights/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hearth {
namespace {

Error last_error(const std::filesystem::path& path) {
  const int code = errno;
  return {code == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo,
          fmt::format("{}: {}", path.string(), std::strerror(code))};
}

// Closes the file at the end of the scope; the mapping does not need it.
struct Descriptor {
  explicit Descriptor(int descriptor) : number(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  int number;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe without a writer would block forever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) return last_error(path);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) return last_error(path);
  if (!S_ISREG(status.st_mode))
    return Error{ErrorKind::kInvalid, fmt::format("{}: not a regular file", path.string())};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile();
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) return last_error(path);
  return MappedFile({static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string_view MappedFile::text() const {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

Error in_file(const std::filesystem::path& path, const Error& error) {
  return {error.kind, path.string() + ": " + error.message};
}

}  // namespace hearth
