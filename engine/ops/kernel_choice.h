// Which kernel runs a piece of work, with which tile and on how many groups: a pure function of
// what the device can do and of the shape. One choose_<family>.cpp a kernel family; tables in
// tests/engine/ops pin it down for devices we do not have.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/ops/attention_work.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/paged_kv.h"
#include "engine/weights/formats.h"

namespace hearth {

// How a matmul wants rows of x: as they are, or as f16. Kernels that make rows can write them in
// such a form too, beside the floats.
enum class RowForm : uint8_t { kFloats, kHalves };

uint64_t row_form_bytes(RowForm form, uint32_t rows, uint32_t width);

// Whether RMS norm and MLP activation can write rows of this width in this form.
bool can_write_form(RowForm form, uint32_t width);

struct RmsNormShape {
  uint32_t rows = 0, width = 0;
  uint32_t residuals = 0;           // to be added before: 0, 1, or the parts of a split product
  RowForm form = RowForm::kFloats;  // that can_write_form()
};

// `deterministic`: a row has the same result whatever rows are beside it.
KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape,
                           bool deterministic = false);

struct EmbedShape {
  WeightFormat format = WeightFormat::kF16;
  uint32_t rows = 0;
  uint32_t width = 0;  // a multiple of the format's block
  uint32_t vocabulary = 0;
};

KernelPlan choose_embed(const DeviceCaps& caps, const EmbedShape& shape);

enum class RopePairs : uint8_t { kAdjacent, kHalves };  // (2i, 2i + 1), (i, i + rope_dims / 2)

struct RopeKvShape {
  uint32_t rows = 0;
  uint32_t heads = 0, kv_heads = 0;
  uint32_t head_size = 0;  // a multiple of 16
  uint32_t rope_dims = 0;  // that are rotated, from the first on; a multiple of 8
  RopePairs pairs = RopePairs::kAdjacent;
  bool head_norms = false;  // RMS norms of q and k, before rope
  KvFormat kv = KvFormat::kF16;
  // q, k and v are parts of a split product, so many floats apart, to be added up.
  uint32_t parts = 1, part_stride = 0;
};

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape);

// The quads of a head that a lane takes: a run that shares a scale in a Q8_0 cache is 8, and must
// not be wider than a subgroup.
constexpr uint32_t rope_lane_quads(uint32_t subgroup_size) {
  return subgroup_size >= 8 ? 1 : 8 / subgroup_size;
}

enum class MlpActivation : uint8_t { kSilu, kGeluTanh };

struct MlpShape {
  uint32_t rows = 0, width = 0;
  MlpActivation activation = MlpActivation::kSilu;
  RowForm form = RowForm::kFloats;  // that can_write_form()
};

KernelPlan choose_mlp(const DeviceCaps& caps, const MlpShape& shape);

struct GatherRowsShape {
  uint32_t rows = 0;  // of the result
  uint32_t width = 0;
  uint32_t source_rows = 0;
};

KernelPlan choose_gather_rows(const DeviceCaps& caps, const GatherRowsShape& shape);

struct BlockCopyShape {
  uint32_t pairs = 0;        // the list's capacity
  uint32_t planes = 0;       // arrays of blocks to copy in: keys, values and scales of every layer
  uint32_t block_bytes = 0;  // the largest of a plane; a multiple of 16
};

KernelPlan choose_block_copy(const DeviceCaps& caps, const BlockCopyShape& shape);

struct MatmulShape {
  WeightFormat format = WeightFormat::kF16;
  uint32_t rows = 0;    // of x
  uint32_t inputs = 0;  // a multiple of the format's block, or of kFloatInputUnit
  uint32_t outputs = 0;
  uint32_t beside = 0;  // outputs of products with the same x that run at the same time
};
inline constexpr uint32_t kFloatInputUnit = 8;
inline constexpr uint32_t kMaxMatvecRows = 8;  // that a matrix-vector kernel takes at once

// The cooperative matrix that matmuls use, f16 operands and f32 sums: the largest fragment the
// device has that divides our tiles.
std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps);

// Which specialization constant of a matmul kernel says what is done to the sums.
inline constexpr size_t kEpilogueConstant = 1;

// How a split product leaves its sums: [splits, rows, outputs] f32, with the rows of whole tiles
// and outputs rounded up to kPartUnit, which whole fragments divide.
struct PartLayout {
  uint32_t splits = 0, rows = 0, outputs = 0;
};
inline constexpr uint32_t kPartUnit = 16;

// A product whose last tiles are shared by several groups each, so that they, too, keep the whole
// device busy: the last of a tile's groups adds up their parts, and counts tell it that it is.
struct SharedTiles {
  KernelPlan multiply;
  uint32_t whole_tiles = 0;  // that are not shared
  uint64_t count_bytes = 0;
};

// A product whose last turn would leave much of the device idle: the outputs that whole turns do
// not take are in smaller tiles, of which one turn takes them all.
struct RestTiles {
  KernelPlan multiply;
  uint32_t first_output = 0;
};

struct MatmulPlan {
  RowForm form = RowForm::kFloats;    // of x, as `multiply` reads it
  std::optional<KernelPlan> prepare;  // first turns x into that, in scratch memory
  KernelPlan multiply;
  std::optional<RestTiles> rest;      // beside it
  std::optional<SharedTiles> shared;  // instead, for an op that brings counts
  std::optional<KernelPlan> reduce;   // in the end adds up parts of the sums, from scratch memory
  uint64_t prepared_bytes = 0;        // of scratch memory for x,
  uint64_t part_bytes = 0;            // and after it for parts of the sums

  uint64_t scratch_bytes = 0;  // of both

  PartLayout parts = {};  // where there is a reduce
  // What `multiply` can do besides (params/matmul.h): norm its row; put the gates and ups of an MLP
  // together. Which of its constants say so; with f16 rows the one after the gate's says that the
  // results are to be f16.
  std::optional<size_t> norm_constant = {};
  std::optional<size_t> gate_constant = {};
  // Begin the norm after it, or end the one before it; the next constant is the number of groups of
  // the product that began it.
  std::optional<size_t> norm_part_constant = {};
};

// Of what two products that have a norm between them know of it, the first in so many groups.
uint64_t norm_state_bytes(uint32_t groups);

// `deterministic`: one kernel shape for any number of rows, so that a row's result is the same to
// the last bit alone and in a batch.
MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape,
                         bool deterministic = false);

struct AttentionShape {
  KvFormat kv = KvFormat::kF16;
  uint32_t heads = 0, kv_heads = 0;  // the first a multiple of the second
  uint32_t head_size = 0;            // a multiple of kHeadSizeUnit, at most kMaxHeadSize
  bool f32_only = false;             // no matrix units, which take queries and weights as f16
  AttentionBucket bucket = {};
};
inline constexpr uint32_t kHeadSizeUnit = 16;
inline constexpr uint32_t kMaxHeadSize = 256;
inline constexpr uint32_t kDeterministicSplit = 2048;  // keys of a split of deterministic attention

struct AttentionPlan {
  KernelPlan few;                       // the lists of an AttentionWork, in this order
  std::optional<KernelPlan> many = {};  // only where the bucket may need it
  AttentionTuning tuning;
  AttentionCapacity capacity = {};
  bool writes_halves = false;  // besides floats
  bool ropes = false;          // takes q, k and v as the projection leaves them
};

// `deterministic`: a row's result is the same to the last bit alone and in a batch, and however its
// prompt is cut into chunks.
AttentionPlan choose_attention(const DeviceCaps& caps, const AttentionShape& shape,
                               bool deterministic = false);

struct SamplingShape {
  uint32_t rows = 0, vocab = 0;
  bool greedy = false;  // is_plainly_greedy() of every row (engine/sampling/sampler.h)
};
inline constexpr uint32_t kMaxSamplingVocab = 524288;

// A row's sampled token does not depend on the plan.
struct SamplingPlan {
  KernelPlan scan;
  std::optional<KernelPlan> pick;     // none where all rows are greedy: the scan picks
  uint32_t chunks = 0, segments = 0;  // a row
  uint32_t chunk_tokens = 0;
  uint32_t tally_words = 0;    // a row; 0: one group looks at it
  uint64_t chunk_bytes = 0;    // of scratch for what is known of chunks,
  uint64_t segment_bytes = 0;  // after them for segments,
  uint64_t tally_bytes = 0;    // and for what groups find together

  uint64_t scratch_bytes() const { return chunk_bytes + segment_bytes + tally_bytes; }
};

SamplingPlan choose_sampling(const DeviceCaps& caps, const SamplingShape& shape);

}  // namespace hearth
