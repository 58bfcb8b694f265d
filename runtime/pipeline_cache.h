// The driver's compiled code on disk, one file per device and driver. A file that is damaged,
// truncated or from another driver is ignored with one log line and later replaced. What cannot be
// read as a file (a folder, a pipe, no permission) is ignored with one line and left alone, and so
// is a directory that cannot be written.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;

// $XDG_CACHE_HOME/hearth/pipelines or ~/.cache/hearth/pipelines; empty if there is no home
// directory.
std::filesystem::path default_cache_directory();

// The name of the cache file for a device and its driver.
std::string pipeline_cache_file_name(const DeviceCaps& caps);

class PipelineCache {
 public:
  // With an empty directory nothing is stored on disk.
  static Result<std::unique_ptr<PipelineCache>> open(Device& device,
                                                     const std::filesystem::path& directory);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  void mark_changed() { changed_ = true; }
  // Writes the file if anything changed since it was read: to a temporary file that is then
  // renamed, so that a reader never sees a partial file.
  void save();
  // The number of bytes read from disk.
  size_t loaded_bytes() const { return loaded_bytes_; }

  VkPipelineCache handle() const { return handle_; }

 private:
  explicit PipelineCache(Device& device) : device_(device) {}

  // The driver's data from file_; empty if there is none that can be used. Clears file_ if it
  // exists but cannot be read.
  std::string load();

  Device& device_;
  std::filesystem::path file_;  // empty: not stored
  VkPipelineCache handle_ = nullptr;
  std::atomic<bool> changed_{false};
  size_t loaded_bytes_ = 0;
};

}  // namespace hearth
