// A memory-mapped file: the kernel loads pages when they are first used and drops them when memory
// is short. Move-only; the bytes live as long as the object, at a fixed address. Any thread may
// read them.
//
// Another program may make the file shorter meanwhile. Reading continues, with zeros for what is
// missing, and check() fails from then on: call it after reading and before relying on the result.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "engine/weights/page_guard.h"
#include "runtime/host/descriptor.h"
#include "runtime/result.h"

namespace hearth {

class MappedFile {
 public:
  // A regular file.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  // Fails, naming the file, if it has become shorter since it was opened or could not be read. It
  // is cheap enough to be called for every megabyte.
  Status check() const;

 private:
  MappedFile(std::filesystem::path path, Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  Descriptor file_;  // open, so that check() can see its size
  std::span<const std::byte> bytes_;
  PageGuard guard_;
};

// The same error with the file named in front of it.
Error in_file(const std::filesystem::path& path, const Error& error);

}  // namespace hearth
