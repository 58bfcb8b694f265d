// A file in memory without reading it: the kernel brings pages as they are touched and takes them
// back when memory is short. Move-only; the bytes live as long as the object, at the same place.
// Any thread may read them. Whoever cuts the file short meanwhile ends the process with a signal.
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
