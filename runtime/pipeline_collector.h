// Notes which pipelines a recording asks for, and compiles nothing. Used with
// CommandRecorder::dry(), which accepts the stand-in that get() returns. One thread at a time.
#pragma once

#include <set>

#include "runtime/pipeline.h"

namespace hearth {

class PipelineCollector final : public PipelineStore {
 public:
  Result<const Pipeline*> get(const PipelineInfo& info) override {
    infos_.insert(info);
    return &stand_in_;
  }
  const std::set<PipelineInfo>& infos() const { return infos_; }

 private:
  const Pipeline stand_in_{nullptr, {}};
  std::set<PipelineInfo> infos_;
};

}  // namespace hearth
