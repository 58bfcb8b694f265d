// The tensors of a model: an architecture lists them with their shapes, the list is checked against
// a file, and the loader follows it. Plain data.
//
// A weight is the matrix or vector that one operation uses. It may consist of several tensors of
// the file with consecutive rows: q, k and v are one weight, so that one kernel reads them all. If
// their formats differ, they stay separate, in as few segments as possible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

enum class WeightRole : uint8_t {
  // Once per model:
  kEmbedding,
  kOutputNorm,
  kOutput,  // if absent, the embedding is used
  // Once per layer:
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
  kSinks,
  kRouter,  // always F32, or the file's quantized format
  kRouterBias,
  kExpertGateUp,  // of all experts, each in device layout on its own
  kExpertGateUpBias,
  kExpertDown,
  kExpertDownBias,
};
inline constexpr size_t kWeightRoles = 22;
inline constexpr WeightRole kFirstLayerRole = WeightRole::kAttentionNorm;

struct WeightPart {
  std::string tensor;
  uint64_t rows = 1;
  // Where the rows begin, if they are not all of the tensor (weight_shard.h); of experts, in the
  // matrix of each.
  uint64_t first_row = 0;
};

struct WeightSpec {
  WeightRole role;
  uint32_t layer = 0;  // for roles of a layer
  std::vector<WeightPart> parts;
  uint64_t cols = 0;
  uint64_t first_col = 0;  // if they are not all of the tensors' (weight_shard.h)
  bool is_vector = false;  // norms and biases: concatenated, f32 on the device
  bool optional = false;   // all parts are present or none
  bool in_f32 = false;     // a matrix of floats that is F32 on the device
  // A matrix, or a vector, for each expert: its rows of every projection, one after the other.
  // There is one part per projection, with the rows of all experts, or, in files with a tensor for
  // each expert, one part per projection and expert, projection by projection.
  uint32_t experts = 0, projections = 1;

  bool has_part_per_expert() const { return parts.size() > projections; }
};

class WeightTable {
 public:
  // A matrix whose rows are those of the given tensors.
  void matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts, uint64_t cols);
  void optional_matrix(WeightRole role, uint32_t layer, std::vector<WeightPart> parts,
                       uint64_t cols);
  // Concatenated vectors; a part's `rows` is its length.
  void vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts);
  void optional_vector(WeightRole role, uint32_t layer, std::vector<WeightPart> parts);
  // A matrix that is F32 on the device if its tensor has floats.
  void f32_matrix(WeightRole role, uint32_t layer, WeightPart part, uint64_t cols);
  // Matrices of experts, with `rows` rows per projection and expert: tensors "ffn_gate_exps.weight"
  // or, if split, "ffn_gate.0.weight" and so on.
  struct ExpertMatrices {
    std::vector<std::string_view> projections;  // "ffn_gate"
    uint32_t experts = 0;
    uint64_t rows = 0, cols = 0;
    bool split = false;
  };
  void expert_matrices(WeightRole role, uint32_t layer, const ExpertMatrices& matrices);
  // Their biases, which may be absent: "ffn_gate_exps.bias".
  void optional_expert_biases(WeightRole role, uint32_t layer, const ExpertMatrices& matrices);
  // A tensor that the configuration uses, so it may be present.
  void known(std::string tensor) { known_.push_back(std::move(tensor)); }

  const std::vector<WeightSpec>& specs() const { return specs_; }
  // Drops all weights but those for which wanted(spec) is true.
  template <class Wanted>
  void keep(Wanted wanted) {
    std::erase_if(specs_, [&](const WeightSpec& spec) { return !wanted(spec); });
  }
  // Calls change(spec) for every weight.
  template <class Change>
  void change(Change change) {
    for (WeightSpec& spec : specs_) change(spec);
  }

  // Checks that all tensors are present, with the right shape and a supported format, and that
  // there are no others. The error names the tensor.
  Status check(const ModelFile& file) const;

 private:
  std::vector<WeightSpec> specs_;
  std::vector<std::string> known_;
};

// Rows of a tensor; of experts in one tensor, the same rows of each one's matrix.
struct TensorRows {
  const ModelTensor* tensor = nullptr;
  uint64_t first = 0, rows = 0;
};

// Consecutive parts of a weight with the same format, which are one matrix on the device.
struct SegmentPlan {
  WeightFormat format = WeightFormat::kF32;
  uint64_t rows = 0, cols = 0;
  uint64_t first_col = 0;  // of the tensors' columns
  std::vector<TensorRows> tensors;
  uint32_t experts = 0, projections = 1;  // as in the spec; `rows` counts those of all experts
  bool is_expert_bias = false;            // [experts, projections, cols] f32 on the device

  uint64_t device_bytes() const;
  // REQUIRES: experts. From the matrix of one expert to the next.
  uint64_t expert_stride() const;
  uint64_t expert_rows() const { return rows / experts; }
  // Of the matrix, or of each expert's.
  uint64_t matrix_rows() const { return experts > 0 ? expert_rows() : rows; }
};

// Empty for an optional weight that is absent. REQUIRES: the table was checked against the file.
std::vector<SegmentPlan> plan_segments(const WeightSpec& spec, const ModelFile& file);

// "blk.3.attn_q.weight"
std::string layer_tensor(uint32_t layer, std::string_view name);

}  // namespace hearth
