// Files that are whole at any moment: written beside the old one, then renamed over it.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Makes the folder if there is none. On failure the old file is as it was.
Status write_atomically(const std::filesystem::path& path, std::string_view contents);

}  // namespace hearth
