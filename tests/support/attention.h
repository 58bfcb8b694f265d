// Runs attention on a random batch with a hostile cache: blocks in random order, and NaN in every
// byte that no token of the batch owns.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "engine/ops/attention.h"
#include "params/attention_rows.h"
#include "params/attention.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_attention.h"
#include "tests/support/row_form.h"

namespace hearth::testing {

class AttentionGpuTest : public GpuTest {
 protected:
  // Zeroed counters, and partial results.
  struct AttentionScratch {
    Buffer buffer;
    uint64_t count_bytes;
    BufferSlice counts() const { return buffer.slice(0, count_bytes); }
    BufferSlice partials() const { return buffer.slice(count_bytes, buffer.bytes() - count_bytes); }
  };
  AttentionScratch attention_scratch(const AttentionCapacity& capacity,
                                     const AttentionShape& shape) {
    const uint64_t counts = (attention_count_bytes(capacity, shape) + 15) / 16 * 16;
    std::vector<uint32_t> words(counts / 4 + attention_partial_bytes(capacity, shape) / 4 + 4,
                                0xffffffff);
    std::fill_n(words.begin(), counts / 4, 0);
    return {filled(words), counts};
  }
  void expect_counted_out(const AttentionScratch& scratch) {
    const std::vector<uint32_t> words = read<uint32_t>(scratch.buffer);
    for (uint64_t i = 0; i < scratch.count_bytes / 4; ++i)
      ASSERT_EQ(words[i], 0u) << "the next step would count on from there";
  }

  static AttentionShape shape_of(const AttentionCase& test) {
    return {.kv = test.kv,
            .heads = test.heads,
            .kv_heads = test.kv_heads,
            .head_size = test.head_size,
            .sinks = !test.sinks.empty(),
            .dealt = test.ranks > 1,
            // A padding sequence in the middle, padding rows at the end.
            .bucket = {.rows = test.rows() + 1,
                       .sequences = static_cast<uint32_t>(test.sequences.size()) + 1,
                       .sequence_rows = test.most_rows(),
                       .sequence_tokens = test.most_tokens(),
                       .trees = test.trees()}};
  }

  // attention_direct, or its emulated variant if the device's lanes do not hold such fragments:
  // both load and store the same.
  KernelPlan direct_kernel(const AttentionShape& shape, bool overlap, uint32_t subgroups = 2) {
    constexpr uint32_t kLanes = 32;
    const DeviceCaps& caps = device().caps();
    return {
        .pipeline = {.kernel = fmt::format("attention_direct{}{}.{}",
                                           caps.features.lane_fragments ? "" : "_emulated",
                                           shape.sinks ? "_sinks" : "", kv_format_name(shape.kv)),
                     .constants =
                         params::AttentionRowsConstants{.kWorkgroupSize = subgroups * kLanes,
                                                        .kSubgroupSize = caps.subgroup_size,
                                                        .kSubgroups = subgroups,
                                                        .kHeadSize = shape.head_size,
                                                        .kRows = shape.heads / shape.kv_heads,
                                                        .kStreamLanes = 4,
                                                        .kRun = 16,
                                                        .kDoubleBuffer = overlap ? 1u : 0u},
                     .subgroup_size = caps.subgroup_size},
        .groups = {.x = 0, .y = shape.kv_heads}};
  }

  // Used instead of those of the batch's trees: a StepBatch has none for a chain.
  std::vector<uint32_t> forced_ancestors;

  // [rows, heads, head_size] of ranks that have some of the blocks each.
  std::vector<float> attend_dealt(const AttentionCase& test, const AttentionData& data,
                                  const AttentionPlan& plan) {
    const size_t size = test.head_size, stride = size + params::kAttentionStats;
    std::vector<std::vector<float>> sums;
    for (uint32_t rank = 0; rank < test.ranks; ++rank)
      sums.push_back(attend(test, data, plan, RowForm::kFloats, {rank, test.ranks}));
    std::vector<float> merged;
    for (size_t head = 0; head < size_t{test.rows()} * test.heads; ++head) {
      double max = -1e300, weights = 0;
      for (const std::vector<float>& own : sums)
        if (own[head * stride + size + 1] > 0)
          max = std::max<double>(max, own[head * stride + size]);
      std::vector<double> values(size);
      for (const std::vector<float>& own : sums) {
        const float* const at = own.data() + head * stride;
        if (at[size + 1] == 0) continue;
        const double scale = std::exp2(at[size] - max);
        weights += scale * at[size + 1];
        for (size_t i = 0; i < size; ++i) values[i] += scale * at[i];
      }
      for (const double value : values) merged.push_back(static_cast<float>(value / weights));
    }
    return merged;
  }

  // [rows, heads, head_size], or, with a deal, this rank's sums: [rows, heads, head_size + 4].
  std::vector<float> attend(const AttentionCase& test, const AttentionData& data,
                            const AttentionPlan& plan, RowForm form = RowForm::kFloats,
                            const BlockDeal& deal = {}) {
    std::vector<params::StepSequence> sequences;
    std::vector<uint32_t> tables;
    uint32_t blocks = 0;
    for (const AttentionSequence& sequence : test.sequences)
      blocks += divide_up(sequence.tokens(), params::kTokensPerBlock);
    std::vector<uint32_t> order(blocks + 3);  // three without an owner
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(blocks));

    const uint64_t block_bytes = kv_block_bytes(test.kv, test.kv_heads, test.head_size);
    const uint64_t scale_bytes = kv_block_scale_bytes(test.kv, test.kv_heads, test.head_size);
    const Buffer keys = poisoned(order.size() * block_bytes), values = poisoned(keys.bytes());
    const Buffer key_scales = poisoned(std::max<uint64_t>(16, order.size() * scale_bytes));
    const Buffer value_scales = poisoned(key_scales.bytes());
    uint32_t row = 0, next_block = 0;
    StepBatch trees;  // only for its ancestors
    for (uint32_t i = 0; i < test.sequences.size(); ++i) {
      const AttentionSequence& sequence = test.sequences[i];
      if (i == test.sequences.size() / 2)
        sequences.push_back(
            {.first_row = 1u << 30, .rows = 0, .first_position = 0, .block_table = 1u << 30});
      sequences.push_back({.first_row = row,
                           .rows = sequence.rows,
                           .first_position = sequence.before,
                           .block_table = static_cast<uint32_t>(tables.size())});
      row += sequence.rows;
      trees.add_sequence(sequence.before, std::vector<uint32_t>(sequence.rows),
                         std::vector<uint32_t>(), sequence.parents);
      std::vector<uint32_t> places;
      for (uint32_t t = 0; t < sequence.tokens(); t += params::kTokensPerBlock) {
        const uint32_t block = order[next_block++];
        tables.push_back(block);
        places.push_back(deal.has(block) ? deal.place(block) : params::kElsewhere);
      }
      fill(test, data.keys[i], places, keys, key_scales);
      fill(test, data.values[i], places, values, value_scales);
      tables.push_back(0xffffffff);  // between tables
    }

    std::vector<uint32_t> masks = forced_ancestors.empty() ? trees.ancestors : forced_ancestors;
    DealtTables dealt;
    dealt.deal(deal, sequences, tables);
    AttentionPlanner planner;
    const Status planned = planner.plan({.sequences = sequences,
                                         .members = sequences.size(),
                                         .window = test.window,
                                         .ancestors = masks,
                                         .dealt = deal.is_divided() ? &dealt : nullptr},
                                        plan.tuning, plan.capacity);
    EXPECT_TRUE(planned.ok()) << planned.error().message;
    if (!planned.ok()) return {};
    const AttentionWork& work = planner.work();
    if (deal.is_divided()) {
      tables = dealt.words();
      masks = work.ancestors;
    }
    AttentionShape shape = shape_of(test);
    shape.bucket.trees = !masks.empty();
    masks.resize(shape.bucket.rows);
    const Buffer sinks = test.sinks.empty() ? poisoned(16) : filled(test.sinks);
    const Buffer q = filled(data.q), table = filled(tables), ancestors = filled(masks);
    const auto list = [&](const auto& items) {
      return items.empty() ? poisoned(16) : filled(items);
    };
    const Buffer few = list(work.few), many = list(work.many);
    const uint64_t row_bytes = uint64_t{test.heads} * test.head_size * 4;
    // Without keys here, a row's sums stay 0.
    const uint64_t sums =
        uint64_t{row + 1} * test.heads * (test.head_size + params::kAttentionStats);
    const Buffer result =
        deal.is_divided() ? filled(std::vector<float>(sums))
                          : poisoned(row_form_bytes(form, row + 1, test.heads * test.head_size));
    const AttentionScratch scratch = attention_scratch(plan.capacity, shape);
    run([&](CommandRecorder& recorder) {
      return record_attention(recorder, pipelines(), plan,
                              {.q = q.all(),
                               .result = result.all(),
                               .cache = {.keys = keys.all(),
                                         .values = values.all(),
                                         .key_scales = key_scales.all(),
                                         .value_scales = value_scales.all()},
                               .block_tables = table.all(),
                               .ancestors = ancestors.all(),
                               .work = {.few = few.all(), .many = many.all()},
                               .counts = scratch.counts(),
                               .partials = scratch.partials(),
                               .shape = shape,
                               .window = test.window,
                               .form = form,
                               .scale = test.scale(),
                               .soft_cap = test.soft_cap,
                               .sinks = sinks.all()});
    });
    expect_counted_out(scratch);
    if (form != RowForm::kFloats) {
      std::vector<float> numbers = read_halves(read<uint32_t>(result));
      numbers.resize(row * row_bytes / 4);
      return numbers;
    }
    std::vector<float> rows = read<float>(result);
    if (deal.is_divided()) return rows;
    const size_t count = row * row_bytes / 4;
    for (size_t i = count; i < rows.size(); ++i)
      EXPECT_TRUE(std::isnan(rows[i])) << "a row of padding was written";
    rows.resize(count);
    return rows;
  }

 private:
  static void fill(const AttentionCase& test, const CachedRows& rows,
                   const std::vector<uint32_t>& table, const Buffer& buffer, const Buffer& scales) {
    const bool f16 = test.kv == KvFormat::kF16;
    const size_t row_bytes = test.head_size * (f16 ? 2 : 1);
    const size_t row_scales = divide_up(test.head_size, params::kScaleWeights);
    const size_t tokens = rows.numbers.size() / test.head_size / test.kv_heads;
    for (size_t token = 0; token < tokens; ++token) {
      if (table[token / params::kTokensPerBlock] == params::kElsewhere) continue;
      for (size_t head = 0; head < test.kv_heads; ++head) {
        const size_t from = token * test.kv_heads + head;
        const size_t to = (size_t{table[token / params::kTokensPerBlock]} * test.kv_heads + head) *
                              params::kTokensPerBlock +
                          token % params::kTokensPerBlock;
        const void* source = f16 ? static_cast<const void*>(&rows.halves[from * test.head_size])
                                 : static_cast<const void*>(&rows.bytes[from * test.head_size]);
        std::memcpy(buffer.mapped() + to * row_bytes, source, row_bytes);
        if (!f16)
          std::memcpy(scales.mapped() + to * row_scales * 2, &rows.scales[from * row_scales],
                      row_scales * 2);
      }
    }
    EXPECT_TRUE(buffer.flush().ok() && scales.flush().ok());
  }
};

}  // namespace hearth::testing
