// A model's weights on the device. Immutable after loading; any thread may use them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/model/weight_table.h"
#include "runtime/buffer.h"
#include "runtime/result.h"

namespace hearth {

class Device;

struct WeightSegment {
  Buffer buffer;  // device layout of `format`
  WeightFormat format = WeightFormat::kF32;
  uint32_t rows = 0, cols = 0;
  // Experts have matrices of their own, `rows` rows in each, expert_stride bytes apart. Those that
  // do not fit into `buffer` are in `more`, with as many per buffer, and the table, [experts] u64,
  // has the addresses of all.
  uint32_t experts = 0;
  uint64_t expert_stride = 0;
  uint32_t buffer_experts = 0;  // per buffer
  std::vector<Buffer> more = {};
  Buffer table = {};
};

// One segment, or several with consecutive rows if the file's formats differ; none if an optional
// weight is absent.
using Weight = std::vector<WeightSegment>;

struct LoadOptions {
  float norm_offset = 0;  // added to the weights of norms
  // Called on the loading thread after every chunk.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

class ModelWeights {
 public:
  // Memory for all weights, with their formats and shapes. REQUIRES: table.check(file) succeeded.
  static Result<ModelWeights> allocate(Device& device, const ModelFile& file,
                                       const WeightTable& table);
  // Reads the file into that memory through the staging ring. Needs no more host memory than the
  // ring and a few chunks. REQUIRES: the same file and table.
  Status fill(Device& device, const ModelFile& file, const WeightTable& table,
              const LoadOptions& options) const;

  const Weight& get(WeightRole role, uint32_t layer = 0) const {
    return weights_[index(role, layer)];
  }
  bool has(WeightRole role, uint32_t layer = 0) const { return !get(role, layer).empty(); }
  uint64_t bytes() const { return bytes_; }

 private:
  static size_t index(WeightRole role, uint32_t layer) {
    return static_cast<size_t>(role) + size_t{layer} * kWeightRoles;
  }

  std::vector<Weight> weights_;  // [layers, roles]; the model's own roles are in layer 0
  uint64_t bytes_ = 0;
};

}  // namespace hearth
