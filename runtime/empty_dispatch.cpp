#include "runtime/empty_dispatch.h"

#include <cstdint>

#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "runtime/queue.h"

namespace hearth {

Status dispatch_empty(Device& device, const Pipeline& pipeline) {
  HEARTH_ASSIGN(CommandRecorder recorder,
                CommandRecorder::begin(device, {.name = "empty dispatch"}));
  recorder.dispatch({.pipeline = pipeline, .arguments = uint32_t{0}, .groups = {0, 0, 0}});
  HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
  return device.compute().run(commands);
}

}  // namespace hearth
