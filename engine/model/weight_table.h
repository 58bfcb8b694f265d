// The tensors a model is made of: an architecture lists them with their shapes, the list is checked
// against a file, and the loader carries it out. Plain data.
//
// A weight is what one operation multiplies with. It may be made of several tensors of the file,
// one below the other: q, k and v are one weight, so that one kernel reads them all. Where their
// formats differ they stay apart, in as few segments as possible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

enum class WeightRole : uint8_t {
  // of the model
  kEmbedding,
  kOutputNorm,
  kOutput,  // not there: the embedding is used
  // of a layer
  kAttentionNorm,
  kQkv,
  kQkvBias,
  kQNorm,
  kKNorm,
  kAttentionOut,
  kAttentionOutBias,
  kAttentionPostNorm,
  kMlpNorm,
  kGateUp,
  kDown,
  kMlpPostNorm,
};
inline constexpr size_t kWeightRoles = 15;
inline constexpr WeightRole kFirstLayerRole = WeightRole::kAttentionNorm;

struct WeightPart {
  std::string tensor;
  uint64_t rows = 1;
};

struct WeightSpec {
  WeightRole role;
  uint32_t layer = 0;  // of the roles of a layer
  std::vector<WeightPart> parts;
  uint64_t cols = 0;
  bool is_vector = false;  // norms and biases: parts follow each other, as f32 on the device
  bool optional = false;   // all parts are there or none
};

class WeightTable {
 public:
  // A matrix of the given tensors, one below the other.
  void matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts, uint64_t cols);
  void optional_matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts,
                       uint64_t cols);
  // Vectors, one after the other; a part's `rows` is its length.
  void vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts);
  void optional_vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts);
  // Read while the configuration was made, so no surprise.
  void known(std::string tensor) { known_.push_back(std::move(tensor)); }

  const std::vector<WeightSpec>& specs() const { return specs_; }

  // Every tensor is there, of the right shape and in a format kernels take, and no other. The error
  // names the tensor.
  Status check(const ModelFile& file) const;

 private:
  std::vector<WeightSpec> specs_;
  std::vector<std::string> known_;
};

// Consecutive parts of a weight in one format, as the device holds them.
struct SegmentPlan {
  WeightFormat format = WeightFormat::kF32;
  uint64_t rows = 0, cols = 0;
  std::vector<const ModelTensor*> tensors;

  uint64_t device_bytes() const;
};

// REQUIRES: the table was checked against the file. Empty for an optional weight that is not there.
std::vector<SegmentPlan> plan_segments(const WeightSpec& spec, const ModelFile& file);

// "blk.3.attn_q.weight"
std::string layer_tensor(uint32_t layer, std::string_view name);

}  // namespace hearth
