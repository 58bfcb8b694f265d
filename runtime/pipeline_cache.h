// The driver's compiled code on disk, one file per device, driver and build of the kernels. A file
// that is damaged, truncated or from another driver is ignored with one log line and later
// replaced. What cannot be read as a file (a folder, a pipe, no permission) is ignored with one
// line and left alone, and so is a directory that cannot be written.
//
// Several processes may use one file: each adds to what the others have written. All functions may
// be called from any thread, also while pipelines are being compiled.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;

// $XDG_CACHE_HOME/hearth/pipelines or ~/.cache/hearth/pipelines; empty if there is no home
// directory.
std::filesystem::path default_cache_directory();

// The name of the cache file for a device, its driver and the kernels of this build.
std::string pipeline_cache_file_name(const DeviceCaps& caps);

class PipelineCache {
 public:
  // With an empty directory nothing is stored on disk.
  static Result<std::unique_ptr<PipelineCache>> open(Device& device,
                                                     const std::filesystem::path& directory);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  // A pipeline was compiled whose code was not in the cache.
  void add_compiled();
  // Writes the file if pipelines were added since it was read or written, with what other processes
  // have added meanwhile: to a temporary file that is then renamed, so that a reader never sees a
  // partial file. Removes files of older builds and drivers that were not written for a month.
  void save();
  // The same, but only if many pipelines were added or the last ones some time ago, so that a crash
  // loses little. Returns at once if another thread is saving.
  void save_if_grown();
  // The number of bytes read from disk.
  size_t loaded_bytes() const { return loaded_bytes_; }

  VkPipelineCache handle() const { return handle_; }

 private:
  explicit PipelineCache(Device& device) : device_(device) {}

  // The driver's data from file_; empty if there is none that can be used. Clears file_ if it
  // exists but cannot be read.
  std::string load();
  // What is in the cache, and what others have added to the file since this object last read or
  // wrote it. Empty if it fails.
  std::string data_to_save();
  std::string data_of(VkPipelineCache cache) const;
  void write();
  void remove_old_files() const;

  Device& device_;
  std::filesystem::path file_;  // empty: not stored
  VkPipelineCache handle_ = nullptr;
  size_t loaded_bytes_ = 0;
  std::mutex saving_;
  uint64_t known_checksum_ = 0;  // of the file's data when this object last read or wrote it

  std::mutex mutex_;
  size_t added_ = 0;  // pipelines that are not in the file
  std::chrono::steady_clock::time_point first_added_;
};

}  // namespace hearth
