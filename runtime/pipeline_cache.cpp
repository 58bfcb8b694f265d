#include "runtime/pipeline_cache.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "runtime/device.h"
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

uint64_t fnv1a(std::span<const char> data) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

std::optional<std::vector<char>> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::vector<char>(std::istreambuf_iterator<char>(in), {});
}

// The driver's data in a cache file, or why it cannot be used.
Result<std::vector<char>> unwrap(const std::vector<char>& file, const DeviceCaps& caps) {
  FileHeader header;
  const FileHeader expected;
  if (file.size() < sizeof(header)) return Error{ErrorKind::kInvalid, "it is truncated"};
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0)
    return Error{ErrorKind::kInvalid, "it is not a pipeline cache of this version"};
  if (header.driver != caps.pipeline_cache_uuid)
    return Error{ErrorKind::kInvalid, "it belongs to another driver"};
  if (header.bytes != file.size() - sizeof(header))
    return Error{ErrorKind::kInvalid, "it is truncated"};
  std::vector<char> data(file.begin() + sizeof(header), file.end());
  if (header.checksum != fnv1a(data)) return Error{ErrorKind::kInvalid, "it is damaged"};
  return data;
}

bool write_whole(const fs::path& path, const FileHeader& header, std::span<const char> data) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(&header), sizeof(header));
  out.write(data.data(), static_cast<std::streamsize>(data.size()));
  out.close();
  return !out.fail();
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
  std::vector<char> data;
  if (!directory.empty()) {
    cache->file_ = directory / pipeline_cache_file_name(device.caps());
    if (const auto file = read_file(cache->file_)) {
      auto unwrapped = unwrap(*file, device.caps());
      if (unwrapped.ok())
        data = std::move(unwrapped).value();
      else
        log_line(fmt::format("ignoring the pipeline cache {}: {}", cache->file_.string(),
                             unwrapped.error().message));
    }
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

void PipelineCache::save() {
  if (file_.empty() || device_.lost() || !changed_.exchange(false)) return;
  size_t bytes = 0;
  vkGetPipelineCacheData(device_.handle(), handle_, &bytes, nullptr);
  std::vector<char> data(bytes);
  if (vkGetPipelineCacheData(device_.handle(), handle_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);

  FileHeader header;
  header.driver = device_.caps().pipeline_cache_uuid;
  header.bytes = data.size();
  header.checksum = fnv1a(data);

  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  fs::path temporary = file_;
  temporary += fmt::format(".{}", getpid());
  if (write_whole(temporary, header, data))
    fs::rename(temporary, file_, error);
  else
    error = std::make_error_code(std::errc::io_error);
  if (!error) return;
  log_line(
      fmt::format("cannot write the pipeline cache {}; kernels will be compiled again next time",
                  file_.string()));
  fs::remove(temporary, error);
}

}  // namespace hearth
