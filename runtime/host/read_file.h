// Reads whole files into memory, never more than a limit: a path that a user gives may be
// /dev/zero, and a file that another program writes may never end. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/result.h"

namespace hearth {

struct ReadFileOptions {
  uint64_t most_bytes = 0;  // a file with more is an error
  // Refuses folders, pipes and devices, and never waits for one. If not set, a pipe is read to its
  // end, so that `-f <(command)` works.
  bool regular_only = false;
};

// The error is kNotFound if there is no such file, and names the file.
Result<std::string> read_file(const std::filesystem::path& path, const ReadFileOptions& options);

// Reads an open file from where it stands; `name` is for error messages.
Result<std::string> read_descriptor(int descriptor, const std::string& name, uint64_t most_bytes);

}  // namespace hearth
