// Does the Vulkan driver here run a compute shader? Set-up asks in a process of its own, because
// some drivers die when they do. Exit 0: yes. Exit 1: no usable device, or a wrong result.
#include <cmath>
#include <cstdio>

#include "engine/ops/norm.h"
#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace {

hearth::Status probe() {
  using namespace hearth;
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(const auto device, Device::open(*instance));
  HEARTH_ASSIGN(const auto pipelines, PipelineStore::create(*device));

  constexpr RmsNormShape kShape{.rows = 2, .width = 64};
  const auto floats = [&](uint64_t count, MemoryIntent intent) {
    return device->memory().allocate({.bytes = count * 4, .intent = intent, .name = "probe"});
  };
  HEARTH_ASSIGN(const Buffer x, floats(kShape.rows * kShape.width, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer weight, floats(kShape.width, MemoryIntent::kUpload));
  HEARTH_ASSIGN(const Buffer y, floats(kShape.rows * kShape.width, MemoryIntent::kReadback));
  for (float& value : x.view<float>()) value = 3.0f;
  for (float& value : weight.view<float>()) value = 2.0f;
  HEARTH_TRY(x.flush());
  HEARTH_TRY(weight.flush());

  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(*device));
  HEARTH_TRY(
      record_rms_norm(recorder, *pipelines, choose_rms_norm(device->caps(), kShape),
                      {.x = x.all(), .weight = weight.all(), .y = y.all(), .shape = kShape}));
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  HEARTH_TRY(device->compute().run(commands));
  HEARTH_TRY(y.invalidate());
  for (const float value : y.view<float>())
    if (!(std::abs(value - 2.0f) < 1e-3f))
      return Error{ErrorKind::kInternal, "the driver computes a wrong result"};
  return {};
}

}  // namespace

int main() {
  const hearth::Status status = probe();
  if (status.ok()) return 0;
  std::fprintf(stderr, "hearth_driver_probe: %s\n", status.error().message.c_str());
  return 1;
}
