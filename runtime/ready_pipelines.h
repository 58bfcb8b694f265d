// The pipelines of a store that are compiled already: get() fails at once for any other, so that a
// recording never waits for a compiler.
#pragma once

#include "runtime/pipeline.h"

namespace hearth {

class ReadyPipelines final : public PipelineStore {
 public:
  explicit ReadyPipelines(const PipelineStore& store) : store_(store) {}

  Result<const Pipeline*> get(const PipelineInfo& info) override {
    if (const Pipeline* pipeline = store_.find(info)) return pipeline;
    missed_ = true;
    return Error{ErrorKind::kNotFound, "kernel '" + info.kernel + "' is still being compiled"};
  }
  // Whether get() has failed.
  bool missed() const { return missed_; }

 private:
  const PipelineStore& store_;
  bool missed_ = false;
};

}  // namespace hearth
