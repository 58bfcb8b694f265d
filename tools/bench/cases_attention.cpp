#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "engine/ops/attention.h"
#include "runtime/memory.h"
#include "runtime/transfer.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// `sequences` of equal length, each with `rows` tokens in this step after `before` in the cache.
struct Batch {
  uint32_t sequences, before, rows;
  KvFormat kv;
};

constexpr uint32_t kHeads = 32, kKvHeads = 8, kHeadSize = 128;

bool on_matrix_units(const PipelineInfo& pipeline) {
  return !pipeline.kernel.starts_with("attention_rows") &&
         !pipeline.kernel.starts_with("attention_subgroup");
}

template <class T>
Result<BufferSlice> add_uploaded(KernelBench& bench, KernelCaseSet& set, Transfer& transfer,
                                 const std::vector<T>& values) {
  if (values.empty()) return BufferSlice{};
  HEARTH_ASSIGN(Buffer buffer, bench.device().memory().allocate(
                                   {.bytes = values.size() * sizeof(T), .name = "bench inputs"}));
  HEARTH_TRY(transfer.upload(buffer.all(), std::as_bytes(std::span(values))));
  HEARTH_TRY(transfer.finish());
  set.buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return set.buffers.back()->all();
}

Result<BufferSlice> add_scratch(KernelBench& bench, KernelCaseSet& set, uint64_t bytes) {
  HEARTH_ASSIGN(const Buffer* buffer, add_filled(bench, set, std::max<uint64_t>(bytes, 16)));
  return buffer->all();
}

// The sequences' KV blocks are in random order, as they are after the engine has run for a while.
Result<KernelCase> make_case(KernelBench& bench, KernelCaseSet& set, Transfer& transfer,
                             const Batch& batch) {
  const uint32_t tokens = batch.before + batch.rows;
  const uint32_t blocks = divide_up(tokens, params::kTokensPerBlock);
  const AttentionShape shape{.kv = batch.kv,
                             .heads = kHeads,
                             .kv_heads = kKvHeads,
                             .head_size = kHeadSize,
                             .bucket = {.rows = batch.sequences * batch.rows,
                                        .sequences = batch.sequences,
                                        .sequence_rows = batch.rows,
                                        .sequence_tokens = tokens}};
  const AttentionPlan plan = choose_attention(bench.device().caps(), shape);

  std::vector<params::StepSequence> sequences;
  for (uint32_t i = 0; i < batch.sequences; ++i)
    sequences.push_back({.first_row = i * batch.rows,
                         .rows = batch.rows,
                         .first_position = batch.before,
                         .block_table = i * blocks});
  std::vector<uint32_t> tables(size_t{batch.sequences} * blocks);
  std::iota(tables.begin(), tables.end(), 0u);
  std::shuffle(tables.begin(), tables.end(), std::mt19937(1));
  HEARTH_ASSIGN(const AttentionWork work, plan_attention(sequences, 0, plan.tuning, plan.capacity));

  Attention op;
  op.shape = shape;
  op.scale = 0.088f;
  HEARTH_ASSIGN(op.block_tables, add_uploaded(bench, set, transfer, tables));
  HEARTH_ASSIGN(op.work.few, add_uploaded(bench, set, transfer, work.few));
  HEARTH_ASSIGN(op.work.many, add_uploaded(bench, set, transfer, work.many));
  const uint64_t block_bytes = kv_block_bytes(batch.kv, kKvHeads, kHeadSize);
  const uint64_t scale_bytes = kv_block_scale_bytes(batch.kv, kKvHeads, kHeadSize);
  HEARTH_ASSIGN(op.cache.keys, add_scratch(bench, set, tables.size() * block_bytes));
  HEARTH_ASSIGN(op.cache.values, add_scratch(bench, set, tables.size() * block_bytes));
  HEARTH_ASSIGN(op.cache.key_scales, add_scratch(bench, set, tables.size() * scale_bytes));
  HEARTH_ASSIGN(op.cache.value_scales, add_scratch(bench, set, tables.size() * scale_bytes));
  const uint64_t row_bytes = uint64_t{kHeads} * kHeadSize * 4;
  HEARTH_ASSIGN(op.q, add_scratch(bench, set, shape.bucket.rows * row_bytes));
  HEARTH_ASSIGN(op.result, add_scratch(bench, set, shape.bucket.rows * row_bytes));
  // All zero, although only the counts need to be.
  const uint64_t counts = attention_count_bytes(plan.capacity, shape);
  const uint64_t partials = attention_partial_bytes(plan.capacity, shape);
  HEARTH_ASSIGN(const BufferSlice scratch,
                add_uploaded(bench, set, transfer, std::vector<uint32_t>((counts + partials) / 4)));
  op.counts = scratch.slice(0, counts);
  op.partials = scratch.slice(counts, partials);

  const PipelineInfo& pipeline = plan.many ? plan.many->pipeline : plan.few.pipeline;
  return KernelCase{
      .kernel = batch.rows == 1    ? "attention_decode"
                : batch.before > 0 ? "attention_verify"
                                   : "attention_prompt",
      .variant = variant_name(pipeline),
      .shape = batch.rows > 1 && batch.before > 0
                   ? fmt::format("{} x {} after {} {}", batch.sequences, batch.rows, batch.before,
                                 kv_format_name(batch.kv))
                   : fmt::format("{} x {} {}", batch.sequences, tokens, kv_format_name(batch.kv)),
      .cost = attention_cost(shape, sequences, /*window=*/0),
      .matrix_units = on_matrix_units(pipeline),
      .record = [=, &bench](CommandRecorder& recorder, uint32_t) {
        return record_attention(recorder, bench.pipelines(), plan, op);
      }};
}

Result<KernelCaseSet> attention_cases(KernelBench& bench) {
  KernelCaseSet set;
  HEARTH_ASSIGN(const auto transfer, Transfer::create(bench.device()));
  const bool cpu = bench.device().caps().type == DeviceType::kCpu;
  std::vector<Batch> batches;
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    if (cpu) {
      batches.push_back({1, 255, 1, kv});
      batches.push_back({8, 255, 1, kv});
      batches.push_back({1, 0, 128, kv});
    } else {
      batches.push_back({1, 511, 1, kv});
      batches.push_back({1, 2047, 1, kv});
      batches.push_back({1, 16383, 1, kv});
      batches.push_back({1, 32767, 1, kv});
      batches.push_back({8, 2047, 1, kv});
      batches.push_back({64, 191, 1, kv});
      batches.push_back({64, 2047, 1, kv});
      batches.push_back({256, 191, 1, kv});
      batches.push_back({1, 500, 16, kv});
      batches.push_back({8, 500, 8, kv});
      batches.push_back({1, 1500, 33, kv});
      batches.push_back({1, 0, 2048, kv});
      batches.push_back({8, 0, 512, kv});
    }
  }
  for (const Batch& batch : batches) {
    HEARTH_ASSIGN(KernelCase item, make_case(bench, set, *transfer, batch));
    set.cases.push_back(std::move(item));
  }
  return set;
}

const KernelCases attention_family{"attention", attention_cases};

}  // namespace
}  // namespace hearth
