// Replaces a file as a whole: the contents are written to a temporary file next to it, which is
// then renamed, so that a reader sees the old file or the new one, and a full disk leaves the old
// one.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

struct ReplaceFileOptions {
  bool create_folder = false;   // if it is missing
  unsigned permissions = 0666;  // before the umask
  // Waits until the contents are on disk, so that a crash of the machine cannot lose them.
  bool durable = true;
};

// Writes the parts one after the other. Replaces only a regular file. If it fails, the old file is
// unchanged and the temporary one removed.
Status replace_file(const std::filesystem::path& path, std::span<const std::string_view> parts,
                    const ReplaceFileOptions& options = {});
Status replace_file(const std::filesystem::path& path, std::string_view contents,
                    const ReplaceFileOptions& options = {});

}  // namespace hearth
