// The driver's compiled code on disk, one file per device and driver. A file that is missing,
// corrupt, cut off or from another driver is as good as none: it is ignored with one line, and so
// is a place that cannot be written.
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

// $XDG_CACHE_HOME/hearth/pipelines, else ~/.cache/hearth/pipelines; empty where there is no home.
std::filesystem::path default_cache_directory();

// The file's name for a device: changes with the device and its driver.
std::string pipeline_cache_file_name(const DeviceCaps& caps);

class PipelineCache {
 public:
  // An empty directory keeps nothing on disk.
  static Result<std::unique_ptr<PipelineCache>> open(Device& device,
                                                     const std::filesystem::path& directory);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  void mark_changed() { changed_ = true; }
  // Writes the file if anything changed since it was read: beside the old one, then renamed, so
  // that a reader never sees half of it.
  void save();
  // The bytes that were taken over from disk.
  size_t loaded_bytes() const { return loaded_bytes_; }

  VkPipelineCache handle() const { return handle_; }

 private:
  explicit PipelineCache(Device& device) : device_(device) {}

  Device& device_;
  std::filesystem::path file_;  // empty: keep nothing
  VkPipelineCache handle_ = nullptr;
  std::atomic<bool> changed_{false};
  size_t loaded_bytes_ = 0;
};

}  // namespace hearth
