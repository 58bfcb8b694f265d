// What a recorder that records nothing was asked to dispatch (CommandRecorder::dry), for explaining
// what a recording would run.
#pragma once

#include <vector>

#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"

namespace hearth {

struct LoggedDispatch {
  PipelineInfo pipeline;
  GroupCount groups;

  bool operator==(const LoggedDispatch&) const = default;
};

}  // namespace hearth
