#include "runtime/device_check.h"

#include "runtime/chain_check.h"
#include "runtime/fragment_check.h"

namespace hearth {

Status check_device(Device& device, PipelineStore& pipelines) {
  HEARTH_TRY(check_chain(device, pipelines));
  return check_fragments(device, pipelines);
}

}  // namespace hearth
