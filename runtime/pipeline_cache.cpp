#include "runtime/pipeline_cache.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include "runtime/device.h"
#include "runtime/host/descriptor.h"
#include "runtime/host/read_file.h"
#include "runtime/host/replace_file.h"
#include "runtime/log.h"
#include "runtime/shader_library.h"
#include "runtime/vulkan_private.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Drivers trust this data, and some crash if it is damaged, so our own header records which driver
// wrote it, its size and a checksum.
struct FileHeader {
  char magic[8] = {'H', 'E', 'A', 'R', 'T', 'H', 'P', '1'};
  std::array<uint8_t, 16> driver = {};
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

// Far beyond what a driver stores for the kernels of all models.
constexpr uint64_t kMostCacheBytes = uint64_t{1} << 30;

// A crash loses at most this many compiled pipelines, or those of this long.
constexpr size_t kMostUnsaved = 32;
constexpr std::chrono::seconds kLongestUnsaved{10};
// Files of other builds and drivers are removed if they were not written for this long.
constexpr std::chrono::hours kOldFile{24 * 30};

constexpr uint64_t kFnvBasis = 0xcbf29ce484222325ull, kFnvPrime = 0x100000001b3ull;

uint64_t fnv1a(std::string_view data) {
  uint64_t hash = kFnvBasis;
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  return hash;
}

// Of all kernels, so that a build with other kernels has another file.
uint32_t kernels_hash() {
  static const uint32_t hash = [] {
    uint64_t sum = kFnvBasis;
    for (const ShaderBinary& shader : shader_library())
      for (const uint32_t word : shader.code) sum = (sum ^ word) * kFnvPrime;
    return static_cast<uint32_t>(sum ^ (sum >> 32));
  }();
  return hash;
}

// What the names of all cache files of a device begin with.
std::string file_prefix(const DeviceCaps& caps) {
  return fmt::format("{:04x}-{:04x}-", caps.vendor_id, caps.device_id);
}

// Keeps other processes from writing to the folder while it exists. Nothing is locked if the folder
// or its file system does not allow it; then the last writer wins.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_.is_open()) static_cast<void>(::flock(folder_.number(), LOCK_EX));
  }

 private:
  Descriptor folder_;  // closing it ends the lock
};

// The driver's data in a cache file, or why it cannot be used.
Result<std::string> unwrap(std::string file, const DeviceCaps& caps) {
  FileHeader header;
  const FileHeader expected;
  if (file.size() < sizeof(header)) return invalid("it is truncated");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0)
    return invalid("it is not a pipeline cache of this version");
  if (header.driver != caps.pipeline_cache_uuid) return invalid("it belongs to another driver");
  if (header.bytes != file.size() - sizeof(header)) return invalid("it is truncated");
  file.erase(0, sizeof(header));
  if (header.checksum != fnv1a(file)) return invalid("it is damaged");
  return file;
}

}  // namespace

fs::path default_cache_directory() {
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && *base != '\0')
    return fs::path(base) / "hearth" / "pipelines";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "hearth" / "pipelines";
  return {};
}

std::string pipeline_cache_file_name(const DeviceCaps& caps) {
  return fmt::format("{}{:02x}-{:08x}.bin", file_prefix(caps),
                     fmt::join(caps.pipeline_cache_uuid, ""), kernels_hash());
}

Result<std::unique_ptr<PipelineCache>> PipelineCache::open(Device& device,
                                                           const fs::path& directory) {
  std::unique_ptr<PipelineCache> cache(new PipelineCache(device));
  std::string data;
  if (!directory.empty()) {
    cache->file_ = directory / pipeline_cache_file_name(device.caps());
    data = cache->load();
    cache->known_checksum_ = fnv1a(data);
  }
  cache->loaded_bytes_ = data.size();
  const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                       .initialDataSize = data.size(),
                                       .pInitialData = data.data()};
  const VkResult result = vkCreatePipelineCache(device.handle(), &info, nullptr, &cache->handle_);
  if (result != VK_SUCCESS) return device.error_from(result, "creating the pipeline cache");
  device.set_name(VK_OBJECT_TYPE_PIPELINE_CACHE, cache->handle_, "pipeline cache");
  return cache;
}

PipelineCache::~PipelineCache() {
  if (handle_ != nullptr) vkDestroyPipelineCache(device_.handle(), handle_, nullptr);
}

std::string PipelineCache::load() {
  Result<std::string> file =
      read_file(file_, {.most_bytes = kMostCacheBytes, .regular_only = true});
  if (!file.ok()) {
    if (file.error().kind == ErrorKind::kNotFound) return {};
    log_line(fmt::format("ignoring the pipeline cache: {}", file.error().message));
    file_.clear();
    return {};
  }
  Result<std::string> data = unwrap(std::move(file).value(), device_.caps());
  if (data.ok()) return std::move(data).value();
  log_line(fmt::format("ignoring the pipeline cache {}: {}", file_.string(), data.error().message));
  return {};
}

void PipelineCache::add_compiled() {
  const std::lock_guard lock(mutex_);
  if (added_++ == 0) first_added_ = std::chrono::steady_clock::now();
}

void PipelineCache::save_if_grown() {
  {
    const std::lock_guard lock(mutex_);
    if (added_ == 0 || (added_ < kMostUnsaved &&
                        std::chrono::steady_clock::now() - first_added_ < kLongestUnsaved))
      return;
  }
  if (const std::unique_lock saving(saving_, std::try_to_lock); saving.owns_lock()) write();
}

void PipelineCache::save() {
  const std::lock_guard saving(saving_);
  write();
}

std::string PipelineCache::data_of(VkPipelineCache cache) const {
  // Other threads may add to it between the two calls; then the second one fails.
  for (int attempt = 0; attempt < 8; ++attempt) {
    size_t bytes = 0;
    vkGetPipelineCacheData(device_.handle(), cache, &bytes, nullptr);
    std::string data(bytes, '\0');
    if (vkGetPipelineCacheData(device_.handle(), cache, &bytes, data.data()) != VK_SUCCESS)
      continue;
    data.resize(bytes);
    return data;
  }
  return {};
}

std::string PipelineCache::data_to_save() {
  Result<std::string> file =
      read_file(file_, {.most_bytes = kMostCacheBytes, .regular_only = true});
  if (!file.ok()) return data_of(handle_);
  const Result<std::string> others = unwrap(std::move(file).value(), device_.caps());
  if (!others.ok() || fnv1a(*others) == known_checksum_) return data_of(handle_);
  // Into a cache of its own: nothing may be merged into one that other threads use.
  const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                       .initialDataSize = others->size(),
                                       .pInitialData = others->data()};
  VkPipelineCache merged = VK_NULL_HANDLE;
  if (vkCreatePipelineCache(device_.handle(), &info, nullptr, &merged) != VK_SUCCESS)
    return data_of(handle_);
  const VkResult result = vkMergePipelineCaches(device_.handle(), merged, 1, &handle_);
  std::string data = data_of(result == VK_SUCCESS ? merged : handle_);
  vkDestroyPipelineCache(device_.handle(), merged, nullptr);
  return data;
}

void PipelineCache::write() {
  if (file_.empty() || device_.lost()) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(added_, 0) == 0) return;
  }
  std::error_code ignored;  // writing will say what is wrong
  fs::create_directories(file_.parent_path(), ignored);
  const FolderLock lock(file_.parent_path());
  const std::string data = data_to_save();
  if (data.empty()) return;

  FileHeader header;
  header.driver = device_.caps().pipeline_cache_uuid;
  header.bytes = data.size();
  header.checksum = fnv1a(data);
  known_checksum_ = header.checksum;
  const std::string_view parts[] = {{reinterpret_cast<const char*>(&header), sizeof(header)}, data};
  // A file that a crash damages is recognized by its checksum.
  const Status status = replace_file(file_, parts, {.create_folder = true, .durable = false});
  if (!status.ok())
    log_line(fmt::format(
        "the pipeline cache is not stored, and kernels will be compiled again next time: {}",
        status.error().message));
  remove_old_files();
}

void PipelineCache::remove_old_files() const {
  const std::string prefix = file_prefix(device_.caps());
  std::error_code error;
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(file_.parent_path(), error)) {
    const fs::path& path = entry.path();
    if (path == file_ || path.extension() != ".bin" ||
        !path.filename().string().starts_with(prefix) || !entry.is_regular_file(error))
      continue;
    const fs::file_time_type written = entry.last_write_time(error);
    if (!error && fs::file_time_type::clock::now() - written > kOldFile) old.push_back(path);
  }
  for (const fs::path& path : old) fs::remove(path, error);
}

}  // namespace hearth
