// hearth bench --link: how fast the link between ranks is, and whether dividing the model pays.
#pragma once

#include "engine/model/model_config.h"
#include "runtime/result.h"

namespace hearth {

// Two threads, or two ranks under mpirun; a rank other than 0 prints nothing.
Status bench_link(const ModelConfig& config, bool json);

}  // namespace hearth
