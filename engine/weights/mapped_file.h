// A memory-mapped file: the kernel loads pages when they are first used and drops them when memory
// is short. Move-only; the bytes live as long as the object, at a fixed address. Any thread may
// read them. If another process truncates the file meanwhile, reading ends this process with a
// signal.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;  // empty
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// The same error with the file named in front of it.
Error in_file(const std::filesystem::path& path, const Error& error);

}  // namespace hearth
