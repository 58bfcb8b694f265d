#include "runtime/pipeline_cache.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/device.h"
#include "runtime/host/read_file.h"
#include "runtime/host/replace_file.h"
#include "runtime/log.h"
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

uint64_t fnv1a(std::string_view data) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

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
  return fmt::format("{:04x}-{:04x}-{:02x}.bin", caps.vendor_id, caps.device_id,
                     fmt::join(caps.pipeline_cache_uuid, ""));
}

Result<std::unique_ptr<PipelineCache>> PipelineCache::open(Device& device,
                                                           const fs::path& directory) {
  std::unique_ptr<PipelineCache> cache(new PipelineCache(device));
  std::string data;
  if (!directory.empty()) {
    cache->file_ = directory / pipeline_cache_file_name(device.caps());
    data = cache->load();
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

void PipelineCache::save() {
  if (file_.empty() || device_.lost() || !changed_.exchange(false)) return;
  size_t bytes = 0;
  vkGetPipelineCacheData(device_.handle(), handle_, &bytes, nullptr);
  std::string data(bytes, '\0');
  if (vkGetPipelineCacheData(device_.handle(), handle_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);

  FileHeader header;
  header.driver = device_.caps().pipeline_cache_uuid;
  header.bytes = data.size();
  header.checksum = fnv1a(data);
  const std::string_view parts[] = {{reinterpret_cast<const char*>(&header), sizeof(header)}, data};
  // A file that a crash damages is recognized by its checksum.
  const Status status = replace_file(file_, parts, {.create_folder = true, .durable = false});
  if (!status.ok())
    log_line(fmt::format(
        "the pipeline cache is not stored, and kernels will be compiled again next time: {}",
        status.error().message));
}

}  // namespace hearth
