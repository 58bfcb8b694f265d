// The pipelines of a store that are compiled already: get() fails at once for any other, so that a
// recording never waits for a compiler.
#pragma once

#include <optional>

#include "runtime/pipeline.h"

namespace hearth {

class ReadyPipelines final : public PipelineStore {
 public:
  explicit ReadyPipelines(const PipelineStore& store) : store_(store) {}

  Result<const Pipeline*> get(const PipelineInfo& info) override {
    HEARTH_TRY(check_constants(info));
    if (const Pipeline* pipeline = store_.find(info)) return pipeline;
    missed_ = info;
    return Error{ErrorKind::kNotFound, "kernel '" + info.kernel + "' is still being compiled"};
  }
  // What get() has failed for last.
  const std::optional<PipelineInfo>& missed() const { return missed_; }

 private:
  const PipelineStore& store_;
  std::optional<PipelineInfo> missed_;
};

}  // namespace hearth
