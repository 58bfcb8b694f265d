// Notes which pipelines a recording asks for, and compiles nothing. Used with
// CommandRecorder::dry(), which accepts the stand-ins that get() returns. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/pipeline.h"

namespace hearth {

class PipelineCollector final : public PipelineStore {
 public:
  Result<const Pipeline*> get(const PipelineInfo& info) override {
    HEARTH_TRY(check_constants(info));
    std::unique_ptr<const Pipeline>& stand_in = stand_ins_[info];
    if (stand_in == nullptr) stand_in.reset(new Pipeline(nullptr, info));
    return stand_in.get();
  }
  std::vector<PipelineInfo> infos() const {
    std::vector<PipelineInfo> infos;
    for (const auto& [info, stand_in] : stand_ins_) infos.push_back(info);
    return infos;
  }

 private:
  std::map<PipelineInfo, std::unique_ptr<const Pipeline>> stand_ins_;
};

}  // namespace hearth
