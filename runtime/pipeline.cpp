#include "runtime/pipeline.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/chain_guard.h"
#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/pipeline_cache.h"
#include "runtime/shader_library.h"
#include "runtime/vulkan_private.h"

namespace hearth {
namespace {

// The specialization constant kChained of common/chain.glsl.
constexpr uint32_t kChainedConstant = 100;

bool has_constant(std::span<const uint32_t> spirv, uint32_t id) {
  constexpr size_t kHeaderWords = 5;
  constexpr uint32_t kOpDecorate = 71, kSpecId = 1;
  for (size_t at = kHeaderWords; at < spirv.size();) {
    const uint32_t words = spirv[at] >> 16, op = spirv[at] & 0xffff;
    if (words == 0) break;
    if (op == kOpDecorate && words == 4 && spirv[at + 2] == kSpecId && spirv[at + 3] == id)
      return true;
    at += words;
  }
  return false;
}

}  // namespace

Pipeline::~Pipeline() {
  if (handle_ != nullptr) vkDestroyPipeline(device_->handle(), handle_, nullptr);
}

PipelineStore::PipelineStore() = default;

PipelineStore::PipelineStore(Device& device, const PipelineStoreOptions& options)
    : device_(&device), options_(options) {}

Result<std::unique_ptr<PipelineStore>> PipelineStore::create(Device& device,
                                                             const PipelineStoreOptions& options) {
  std::unique_ptr<PipelineStore> store(new PipelineStore(device, options));
  const VkPushConstantRange range{.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                  .size = static_cast<uint32_t>(kPushBytes)};
  const VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                        .pushConstantRangeCount = 1,
                                        .pPushConstantRanges = &range};
  const VkResult result = vkCreatePipelineLayout(device.handle(), &info, nullptr, &store->layout_);
  if (result != VK_SUCCESS) return device.error_from(result, "creating the pipeline layout");
  device.set_name(VK_OBJECT_TYPE_PIPELINE_LAYOUT, store->layout_, "kernels");
  HEARTH_ASSIGN(store->cache_, PipelineCache::open(device, options.cache_directory));
  return store;
}

PipelineStore::~PipelineStore() {
  if (cache_ != nullptr) save();
  pipelines_.clear();
  cache_.reset();
  if (layout_ != nullptr) vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
}

Result<std::unique_ptr<Pipeline>> PipelineStore::compile(const PipelineInfo& info) const {
  const DeviceCaps& caps = device_->caps();
  if (device_->lost()) return device_->lost_error();
  if (info.subgroup_size != 0 &&
      (info.subgroup_size < caps.min_subgroup_size || info.subgroup_size > caps.max_subgroup_size))
    return Error{
        ErrorKind::kUnsupported,
        fmt::format("kernel '{}' needs subgroups of {}, but {} supports {} to {}", info.kernel,
                    info.subgroup_size, caps.name, caps.min_subgroup_size, caps.max_subgroup_size)};
  HEARTH_ASSIGN(const ShaderBinary shader, find_shader(info.kernel));

  std::unique_ptr<Pipeline> pipeline(new Pipeline(device_, info));
  pipeline->layout_ = layout_;
  const VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = shader.code.size_bytes(),
                                             .pCode = shader.code.data()};
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult result = vkCreateShaderModule(device_->handle(), &module_info, nullptr, &module);
  if (result != VK_SUCCESS)
    return device_->error_from(result, fmt::format("loading kernel '{}'", info.kernel));

  pipeline->chained_ = device_->chain().is_open() && has_constant(shader.code, kChainedConstant);
  const std::span<const uint32_t> words = info.constants.words();
  std::vector<uint32_t> constants(words.begin(), words.end());
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i)
    entries.push_back({.constantID = i, .offset = i * 4, .size = 4});
  if (pipeline->chained_) {
    entries.push_back({.constantID = kChainedConstant,
                       .offset = static_cast<uint32_t>(constants.size() * 4),
                       .size = 4});
    constants.push_back(1);
  }
  const VkSpecializationInfo specialization{.mapEntryCount = static_cast<uint32_t>(entries.size()),
                                            .pMapEntries = entries.data(),
                                            .dataSize = constants.size() * sizeof(uint32_t),
                                            .pData = constants.data()};
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = info.subgroup_size};
  VkPipelineShaderStageCreateFlags full_subgroups = 0;
  if (info.subgroup_size != 0)
    full_subgroups = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  VkPipelineCreationFeedback feedback{};
  const VkPipelineCreationFeedbackCreateInfo feedback_info{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
      .pPipelineCreationFeedback = &feedback};
  const VkComputePipelineCreateInfo pipeline_info{
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .pNext = &feedback_info,
      .flags = options_.statistics
                   ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR}
                   : VkPipelineCreateFlags{0},
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = info.subgroup_size != 0 ? &subgroup : nullptr,
                .flags = full_subgroups,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main",
                .pSpecializationInfo = &specialization},
      .layout = layout_};
  result = vkCreateComputePipelines(device_->handle(), cache_->handle(), 1, &pipeline_info, nullptr,
                                    &pipeline->handle_);
  vkDestroyShaderModule(device_->handle(), module, nullptr);
  if (result != VK_SUCCESS)
    return device_->error_from(result,
                               fmt::format("compiling kernel '{}' with constants [{}]", info.kernel,
                                           fmt::join(info.constants.words(), ", ")));
  constexpr VkPipelineCreationFeedbackFlags kHit =
      VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
      VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
  pipeline->cached_ = (feedback.flags & kHit) == kHit;
  device_->set_name(VK_OBJECT_TYPE_PIPELINE, pipeline->handle_, info.kernel);
  return pipeline;
}

Status check_constants(const PipelineInfo& info) {
  const std::string& name = info.constants.unknown_name();
  if (name.empty()) return {};
  return Error{ErrorKind::kInternal,
               fmt::format("kernel '{}' has no constant '{}'", info.kernel, name)};
}

Result<const Pipeline*> PipelineStore::get(const PipelineInfo& info) {
  HEARTH_TRY(check_constants(info));
  std::unique_lock lock(mutex_);
  while (true) {
    if (const auto found = pipelines_.find(info); found != pipelines_.end())
      return found->second.get();
    if (compiling_.insert(info).second) break;
    compiled_.wait(lock);
  }
  lock.unlock();
  if (options_.before_compile) options_.before_compile(info);
  Result<std::unique_ptr<Pipeline>> pipeline = compile(info);
  lock.lock();
  compiling_.erase(info);
  compiled_.notify_all();
  if (!pipeline.ok()) return std::move(pipeline).error();
  if (!(*pipeline)->cached_) cache_->add_compiled();
  return pipelines_.emplace(info, std::move(pipeline).value()).first->second.get();
}

const Pipeline* PipelineStore::find(const PipelineInfo& info) const {
  const std::lock_guard lock(mutex_);
  const auto found = pipelines_.find(info);
  return found != pipelines_.end() ? found->second.get() : nullptr;
}

Status PipelineStore::prepare(std::span<const PipelineInfo> infos) {
  std::atomic<size_t> next{0};
  std::mutex error_mutex;
  std::optional<Error> first_error;
  const auto work = [&] {
    for (size_t i = next++; i < infos.size(); i = next++) {
      auto result = get(infos[i]);
      if (result.ok()) continue;
      const std::lock_guard lock(error_mutex);
      if (!first_error) first_error = std::move(result).error();
    }
  };
  const size_t threads =
      std::min<size_t>(infos.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();  // joins
  if (first_error) return *first_error;
  return {};
}

void PipelineStore::save() { cache_->save(); }

void PipelineStore::save_if_grown() { cache_->save_if_grown(); }

size_t PipelineStore::size() const {
  const std::lock_guard lock(mutex_);
  return pipelines_.size();
}

}  // namespace hearth
