#include <fmt/format.h>

#include "engine/ops/rope.h"
#include "engine/ops/rope_table.h"
#include "params/step.h"
#include "tools/bench/add_list.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// The attention shapes of Llama-3-8B: a prompt of 2048 tokens, and decode steps of 1 and 64
// sequences.
Result<KernelCaseSet> rope_cases(KernelBench& bench) {
  KernelCaseSet set;
  HEARTH_ASSIGN(const RopeTable table, make_rope_table({.dims = 128, .base = 500'000.0}));
  HEARTH_ASSIGN(const Buffer* table_buffer, add_list(bench, set, rope_table_words(table)));
  for (const uint32_t rows : {1u, 64u, 2048u}) {
    const bool prompt = rows > 64;
    const uint32_t members = prompt ? 1 : rows;
    const uint32_t blocks = prompt ? rows / params::kTokensPerBlock : rows;
    std::vector<uint32_t> sequences, owners, block_table;
    for (uint32_t i = 0; i < members; ++i)
      sequences.insert(sequences.end(), {prompt ? 0 : i, prompt ? rows : 1, 7, prompt ? 0 : i});
    for (uint32_t i = 0; i < rows; ++i) owners.push_back(prompt ? 0 : i);
    for (uint32_t i = 0; i < blocks + 1; ++i) block_table.push_back(i);
    HEARTH_ASSIGN(const Buffer* sequence_buffer, add_list(bench, set, sequences));
    HEARTH_ASSIGN(const Buffer* owner_buffer, add_list(bench, set, owners));
    HEARTH_ASSIGN(const Buffer* block_buffer, add_list(bench, set, block_table));
    for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
      for (const bool norms : {false, true}) {
        const RopeKvShape shape{.rows = rows,
                                .heads = 32,
                                .kv_heads = 8,
                                .head_size = 128,
                                .rope_dims = 128,
                                .pairs = RopePairs::kHalves,
                                .head_norms = norms,
                                .kv = kv};
        const uint64_t qkv_bytes = uint64_t{rows} * (32 + 16) * 128 * 4;
        HEARTH_ASSIGN(const Buffer* qkv, add_filled(bench, set, qkv_bytes));
        const uint64_t kv_bytes = (blocks + 1) * kv_block_bytes(kv, 8, 128);
        const uint64_t scale_bytes = (blocks + 1) * kv_block_scale_bytes(kv, 8, 128) + 16;
        HEARTH_ASSIGN(const Buffer* keys, add_filled(bench, set, kv_bytes));
        HEARTH_ASSIGN(const Buffer* values, add_filled(bench, set, kv_bytes));
        HEARTH_ASSIGN(const Buffer* scales, add_filled(bench, set, scale_bytes));
        RopeKv op{.q = {},
                  .k = {},
                  .v = {},
                  .q_out = {},
                  .q_norm = table_buffer->all(),
                  .k_norm = table_buffer->all(),
                  .table = table_buffer->all(),
                  .cache = {keys->all(), values->all(), scales->all(), scales->all()},
                  .sequences = sequence_buffer->all(),
                  .row_sequences = owner_buffer->all(),
                  .block_tables = block_buffer->all(),
                  .shape = shape};
        use_fused_qkv(op, qkv->all());
        const KernelPlan plan = choose_rope_kv(bench.device().caps(), shape);
        set.cases.push_back(
            {.kernel = fmt::format("rope_kv_{}{}", kv_format_name(kv), norms ? "_norms" : ""),
             .variant = variant_name(plan.pipeline),
             .shape = fmt::format("{} x (32 + 2 x 8) x 128", rows),
             .cost = rope_kv_cost(shape),
             .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
               return record_rope_kv(recorder, bench.pipelines(), plan, op);
             }});
      }
    }
  }
  return set;
}

const KernelCases rope_family{"rope_kv", rope_cases};

}  // namespace
}  // namespace hearth
