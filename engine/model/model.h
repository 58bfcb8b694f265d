// A model on a device: configuration, weights, rope tables. Immutable after loading, so that any
// number of runners may share it; any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/architecture.h"
#include "engine/model/model_config.h"
#include "engine/model/model_weights.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class Device;
class Transfer;

// What a file's header says: enough to tell what it needs, and whether it is complete.
struct ModelPlan {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  WeightTable table;
  std::vector<ModelMatmul> matmuls;
  uint64_t weight_bytes = 0;  // on the device
  uint64_t parameters = 0;
};

// Fails with the name of what is missing, superfluous or misshapen.
Result<ModelPlan> plan_model(const ModelFile& file);

struct ModelOptions {
  // The longest sequence there will be; 0: as long as the model was made for. Long-rope models
  // compute differently beyond a length.
  uint32_t context = 0;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

class Model {
 public:
  static Result<std::unique_ptr<Model>> load(Device& device, const ModelFile& file,
                                             const ModelOptions& options = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Architecture& architecture() const { return *plan_.architecture; }
  const ModelConfig& config() const { return plan_.config; }
  const ModelPlan& plan() const { return plan_; }
  const ModelWeights& weights() const { return weights_; }
  uint32_t context() const { return context_; }
  const Buffer& rope_table() const { return rope_table_; }
  const Buffer& window_rope_table() const {
    return window_rope_table_ ? window_rope_table_ : rope_table_;
  }

 private:
  Model() = default;

  ModelPlan plan_;
  ModelWeights weights_;
  Buffer rope_table_, window_rope_table_;
  uint32_t context_ = 0;
};

}  // namespace hearth
