// Which kernel runs an operation, with which tile and how many workgroups: a pure function of the
// device's capabilities and the shape. There is one choose_<family>.cpp per kernel family; tables
// in tests/engine/ops test the choices for devices we do not have.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/ops/attention_work.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/paged_kv.h"
#include "engine/weights/formats.h"

namespace hearth {

// The form in which a matmul reads rows of x: floats or f16. Kernels that compute rows can write
// f16 in addition to floats.
enum class RowForm : uint8_t { kFloats, kHalves };

uint64_t row_form_bytes(RowForm form, uint32_t rows, uint32_t width);

// Whether RMS norm and MLP activation can write rows of this width in this form.
bool can_write_form(RowForm form, uint32_t width);

struct RmsNormShape {
  uint32_t rows = 0, width = 0;
  uint32_t residuals = 0;           // added to x first: 0, 1, or the number of splits of a product
  RowForm form = RowForm::kFloats;  // REQUIRES: can_write_form()
};

// `deterministic`: a row's result does not depend on the other rows.
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
  uint32_t rope_dims = 0;  // rotated elements, from the first on; a multiple of 8
  RopePairs pairs = RopePairs::kAdjacent;
  bool head_norms = false;  // RMS norms of q and k, before rope
  KvFormat kv = KvFormat::kF16;
  // With several `parts`, q, k and v are partial sums of a split product, partial_stride floats
  // apart, which are added up.
  uint32_t parts = 1, partial_stride = 0;
  bool trees = false;  // rows may be in trees
  bool dealt = false;  // ranks share the KV blocks; a row's block may be kElsewhere
};

KernelPlan choose_rope_kv(const DeviceCaps& caps, const RopeKvShape& shape);

// How many groups of four elements of a head a lane takes. In a Q8_0 cache 8 of them share a scale
// and must not be spread over more than a subgroup.
constexpr uint32_t rope_lane_quads(uint32_t subgroup_size) {
  return subgroup_size >= 8 ? 1 : 8 / subgroup_size;
}

enum class MlpActivation : uint8_t { kSilu, kGeluTanh };

struct MlpShape {
  uint32_t rows = 0, width = 0;
  MlpActivation activation = MlpActivation::kSilu;
  RowForm form = RowForm::kFloats;  // REQUIRES: can_write_form()
};

KernelPlan choose_mlp(const DeviceCaps& caps, const MlpShape& shape);

struct GatherRowsShape {
  uint32_t rows = 0;  // of the result
  uint32_t width = 0;
  uint32_t source_rows = 0;
};

KernelPlan choose_gather_rows(const DeviceCaps& caps, const GatherRowsShape& shape);

struct PoolRowsShape {
  uint32_t ranges = 0;  // rows of the result
  uint32_t width = 0;
  uint32_t rows = 0;  // of x
};

KernelPlan choose_pool_rows(const DeviceCaps& caps, const PoolRowsShape& shape);

struct HiddenRowsShape {
  uint32_t rows = 0;   // to keep, or comparisons
  uint32_t width = 0;  // a multiple of 8
};

KernelPlan choose_keep_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape);
KernelPlan choose_compare_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape);

struct BlockCopyShape {
  uint32_t pairs = 0;        // capacity of the list
  uint32_t planes = 0;       // arrays of blocks: keys, values and scales of every layer
  uint32_t block_bytes = 0;  // largest block of any plane; a multiple of 16
};

KernelPlan choose_block_copy(const DeviceCaps& caps, const BlockCopyShape& shape);

struct MatmulShape {
  WeightFormat format = WeightFormat::kF16;
  uint32_t rows = 0;    // of x
  uint32_t inputs = 0;  // a multiple of the format's block, or of kFloatInputUnit
  uint32_t outputs = 0;
  uint32_t sibling_outputs = 0;  // of products with the same x that run at the same time
};
inline constexpr uint32_t kFloatInputUnit = 8;
inline constexpr uint32_t kMaxMatvecRows = 8;  // of a matrix-vector kernel

// The fragment that matmuls use, with f16 operands and f32 sums: the largest one of the device that
// divides our tiles.
std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps);

// The partial sums of a split product: [splits, rows, outputs] f32, with rows rounded up to whole
// tiles and outputs to kPartUnit, a multiple of all fragment widths.
struct PartLayout {
  uint32_t splits = 0, rows = 0, outputs = 0;
};
inline constexpr uint32_t kPartUnit = 16;

// A product whose last tiles are computed by several workgroups each (split-k), so that the last
// wave keeps the whole device busy, too. The last workgroup of a tile to finish, recognized by a
// counter, adds up the partial sums.
struct SharedTiles {
  KernelPlan multiply;
  uint32_t whole_tiles = 0;  // tiles that are not shared
  uint64_t count_bytes = 0;
};

// A product whose last wave would leave much of the device idle: the outputs that full waves do not
// cover are computed in one wave of smaller tiles.
struct RestTiles {
  KernelPlan multiply;
  uint32_t first_output = 0;
};

struct MatmulPlan {
  RowForm form = RowForm::kFloats;    // of x, for `multiply`
  std::optional<KernelPlan> prepare;  // converts x to that form, in scratch memory
  KernelPlan multiply;
  std::optional<RestTiles> rest;      // runs in addition to it
  std::optional<SharedTiles> shared;  // replaces it for an op with counters
  std::optional<KernelPlan> reduce;   // finally adds up partial sums from scratch memory
  uint64_t prepared_bytes = 0;        // scratch memory for x
  uint64_t part_bytes = 0;            // then, for partial sums

  uint64_t scratch_bytes = 0;  // both together

  PartLayout parts = {};  // if there is a reduce
  // What else `multiply` can do (params/matmul.h): norm its row first, combine gate and up of an
  // MLP, and begin the norm after the product or finish the one before it.
  bool can_norm = false, can_gate = false, can_share_norm = false;
};

// Memory that two products use for a norm between them, if the first has `groups` workgroups.
uint64_t norm_state_bytes(uint32_t groups);

// `deterministic`: uses one kernel shape for any number of rows, so that a row's result is the
// same, to the last bit, alone and in a batch.
MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape,
                         bool deterministic = false);

struct AttentionShape {
  KvFormat kv = KvFormat::kF16;
  uint32_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads
  uint32_t head_size = 0;            // a multiple of kHeadSizeUnit, at most kMaxHeadSize
  bool f32_only = false;             // avoids matrix units, which need queries and weights as f16
  bool sinks = false;                // every head has a logit without a key (Attention::sinks)
  // Ranks share a pool of KV blocks (dealt_tables.h): the result is sums for ranks to merge.
  bool dealt = false;
  AttentionBucket bucket = {};
};
inline constexpr uint32_t kHeadSizeUnit = 16;
inline constexpr uint32_t kMaxHeadSize = 256;
inline constexpr uint32_t kDeterministicSplit = 2048;  // keys per split in deterministic attention

struct AttentionPlan {
  KernelPlan few;                       // for AttentionWork::few
  std::optional<KernelPlan> many = {};  // for AttentionWork::many; only if the bucket may need it
  AttentionTuning tuning;
  AttentionCapacity capacity = {};
  bool writes_halves = false;  // in addition to floats
  bool ropes = false;          // does rope and the KV write itself
};

// `deterministic`: a row's result is the same, to the last bit, alone and in a batch, and however
// its prompt is chunked.
AttentionPlan choose_attention(const DeviceCaps& caps, const AttentionShape& shape,
                               bool deterministic = false);

struct SamplingShape {
  uint32_t rows = 0, vocab = 0;
  bool greedy = false;  // is_plainly_greedy() of every row (engine/sampling/sampler.h)
  bool extras = false;  // rows may have paths, DRY penalties and masks
  bool stages = false;  // rows may have stages
};
inline constexpr uint32_t kMaxSamplingVocab = 524288;

// A row's sampled token does not depend on the plan.
struct SamplingPlan {
  KernelPlan scan;
  std::optional<KernelPlan> pick;     // none if all rows are greedy: the scan picks
  std::optional<KernelPlan> stages;   // only if the shape has them
  uint32_t chunks = 0, segments = 0;  // per row
  uint32_t chunk_tokens = 0;
  uint32_t tally_words = 0;    // per row; 0: one workgroup reads the row
  uint64_t chunk_bytes = 0;    // scratch memory for chunks, with stages also for their sums,
  uint64_t segment_bytes = 0;  // then for segments,
  uint64_t tally_bytes = 0;    // then for counts that workgroups share

  uint64_t scratch_bytes() const { return chunk_bytes + segment_bytes + tally_bytes; }
};

SamplingPlan choose_sampling(const DeviceCaps& caps, const SamplingShape& shape);

// `commits`: capacity of the list.
KernelPlan choose_history_commit(const DeviceCaps& caps, uint32_t commits);
KernelPlan choose_mix_logits(const DeviceCaps& caps, const SamplingShape& shape);

}  // namespace hearth
