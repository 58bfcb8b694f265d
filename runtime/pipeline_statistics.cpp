#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/vulkan_private.h"

namespace hearth {
namespace {

double as_number(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 != VK_FALSE ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    default:
      return statistic.value.f64;
  }
}

}  // namespace

Result<std::vector<PipelineStatistic>> read_statistics(Device& device, const Pipeline& pipeline) {
  // A compute pipeline is one executable.
  const VkPipelineExecutableInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                         .pipeline = pipeline.handle(),
                                         .executableIndex = 0};
  uint32_t count = 0;
  VkResult result = vkGetPipelineExecutableStatisticsKHR(device.handle(), &info, &count, nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> statistics(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  if (result == VK_SUCCESS)
    result =
        vkGetPipelineExecutableStatisticsKHR(device.handle(), &info, &count, statistics.data());
  if (result != VK_SUCCESS)
    return device.error_from(result, fmt::format("reading statistics of '{}'", pipeline.name()));
  std::vector<PipelineStatistic> all;
  for (const VkPipelineExecutableStatisticKHR& statistic : statistics)
    all.push_back({.name = statistic.name, .value = as_number(statistic)});
  return all;
}

}  // namespace hearth
