// A model on a device: configuration, weights, rope tables. Immutable once it is allocated, except
// for the contents of its memory on the device, so any number of runners and threads may share it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/architecture.h"
#include "engine/model/model_config.h"
#include "engine/model/model_weights.h"
#include "engine/program/weight_shapes.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class Device;
class Transfer;

// What a file's header says: enough to know what the model needs and whether the file is complete.
struct ModelPlan {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  WeightTable table;
  WeightShapes shapes;
  std::vector<ModelMatmul> matmuls;
  uint64_t weight_bytes = 0;  // on the device
  uint64_t parameters = 0;    // of the whole model
};

// Fails with the name of the key or tensor that is missing, unknown or of the wrong shape. A model
// of some layers only has what those need: the first also the embedding, the last also the final
// norm and the output matrix. A shard has its part of every layer (weight_shard.h).
// If ranks share KV blocks (`deal`), each has all layers, and the last one what logits need.
Result<ModelPlan> plan_model(const ModelFile& file, LayerRange held = {}, TensorShard shard = {},
                             BlockDeal deal = {});

struct ModelOptions {
  // Most tokens of a sequence; 0: the model's own. Long-rope models compute differently beyond a
  // certain length.
  uint32_t context = 0;
  LayerRange held = {};
  TensorShard shard = {};
  BlockDeal deal = {};
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

class Model {
 public:
  static Result<std::unique_ptr<Model>> load(Device& device, const ModelFile& file,
                                             const ModelOptions& options = {});
  // The same in two parts: everything but the values of the weights, which is enough to record
  // steps with, and those. REQUIRES: the same device, file and options; no step runs before the
  // weights are there.
  static Result<std::unique_ptr<Model>> allocate(Device& device, const ModelFile& file,
                                                 const ModelOptions& options = {});
  Status fill(Device& device, const ModelFile& file, const ModelOptions& options = {}) const;
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
