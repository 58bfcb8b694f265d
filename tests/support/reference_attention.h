// What attention over the paged cache should compute, in double and as simply as possible, and the
// random batches it is tested with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/model/step_batch.h"
#include "engine/ops/paged_kv.h"
#include "tests/support/compare.h"

namespace hearth::testing {

// One sequence of a batch: its tokens in the cache before the step, and its rows in the step. The
// last rows may be a tree, whose first row has no parent in it (StepBatch::add_sequence).
struct AttentionSequence {
  uint32_t before = 0, rows = 0;
  std::vector<uint32_t> parents = {};

  uint32_t tokens() const { return before + rows; }
  uint32_t tree_begin() const { return tokens() - static_cast<uint32_t>(parents.size()); }
  // The keys that the token at `position` sees without a window, in order.
  std::vector<uint32_t> path(uint32_t position) const {
    std::vector<uint32_t> keys;
    uint32_t at = position;
    while (at >= tree_begin()) {
      keys.push_back(at);
      const uint32_t parent = parents[at - tree_begin()];
      at = parent == kTreeRoot ? tree_begin() - 1 : tree_begin() + parent;
      if (at + 1 == 0) break;
    }
    for (uint32_t key = at + 1; key-- > 0;) keys.push_back(key);
    std::reverse(keys.begin(), keys.end());
    return keys;
  }
};

struct AttentionCase {
  KvFormat kv = KvFormat::kF16;
  uint32_t heads = 4, kv_heads = 2, head_size = 64;
  std::vector<AttentionSequence> sequences;
  uint32_t window = 0;
  float soft_cap = 0;
  std::vector<float> sinks = {};  // [heads], or none
  uint32_t ranks = 1;             // that have some of the KV blocks each

  uint32_t rows() const {
    uint32_t rows = 0;
    for (const AttentionSequence& sequence : sequences) rows += sequence.rows;
    return rows;
  }
  uint32_t most_rows() const {
    uint32_t rows = 0;
    for (const AttentionSequence& sequence : sequences) rows = std::max(rows, sequence.rows);
    return rows;
  }
  uint32_t most_tokens() const {
    uint32_t tokens = 0;
    for (const AttentionSequence& sequence : sequences)
      tokens = std::max(tokens, sequence.tokens());
    return tokens;
  }
  bool trees() const {
    return std::ranges::any_of(sequences, [](const auto& each) { return !each.parents.empty(); });
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_size)); }
};

// Keys or values of a sequence, [tokens, kv_heads, head_size]: the bits that go into the cache, and
// the numbers that these bits represent.
struct CachedRows {
  std::vector<uint16_t> halves;  // F16
  std::vector<int8_t> bytes;     // Q8_0
  std::vector<uint16_t> scales;  // Q8_0: [tokens, kv_heads, ceil(head_size / kScaleWeights)]
  std::vector<float> numbers;
};

inline CachedRows cache_rows(const std::vector<float>& values, KvFormat kv, uint32_t head_size) {
  CachedRows rows;
  if (kv == KvFormat::kF16) {
    rows.halves = to_half(values);
    for (const uint16_t half : rows.halves) rows.numbers.push_back(from_half(half));
    return rows;
  }
  for (size_t row = 0; row < values.size(); row += head_size) {
    for (uint32_t begin = 0; begin < head_size; begin += params::kScaleWeights) {
      const uint32_t end = std::min(begin + params::kScaleWeights, head_size);
      float largest = 0;
      for (uint32_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[row + i]));
      const uint16_t half = to_half(largest / 127.0f);
      const float scale = from_half(half);
      rows.scales.push_back(half);
      for (uint32_t i = begin; i < end; ++i) {
        const float q = scale == 0 ? 0 : std::clamp(values[row + i] / scale, -127.0f, 127.0f);
        rows.bytes.push_back(static_cast<int8_t>(std::lround(q)));
        rows.numbers.push_back(static_cast<float>(rows.bytes.back()) * scale);
      }
    }
  }
  return rows;
}

struct AttentionData {
  std::vector<float> q;                  // [rows, heads, head_size]
  std::vector<CachedRows> keys, values;  // one per sequence
};

// Sequence i is the same whatever else is in the batch and however many of its tokens are rows of
// this step: its data depend only on `seed + i` and the token's position.
inline AttentionData make_attention_data(const AttentionCase& test, uint32_t seed) {
  AttentionData data;
  for (uint32_t i = 0; i < test.sequences.size(); ++i) {
    const AttentionSequence& sequence = test.sequences[i];
    const size_t kv_count = size_t{sequence.tokens()} * test.kv_heads * test.head_size;
    const size_t token_size = size_t{test.heads} * test.head_size;
    data.keys.push_back(
        cache_rows(random_floats(kv_count, 3 * (seed + i)), test.kv, test.head_size));
    data.values.push_back(
        cache_rows(random_floats(kv_count, 3 * (seed + i) + 1), test.kv, test.head_size));
    const std::vector<float> q = random_floats(sequence.tokens() * token_size, 3 * (seed + i) + 2);
    data.q.insert(data.q.end(), q.begin() + static_cast<ptrdiff_t>(sequence.before * token_size),
                  q.end());
  }
  return data;
}

inline std::vector<double> reference_attention(const AttentionCase& test,
                                               const AttentionData& data) {
  std::vector<double> result;
  const uint32_t size = test.head_size, group = test.heads / test.kv_heads;
  size_t row = 0;
  for (uint32_t i = 0; i < test.sequences.size(); ++i) {
    const AttentionSequence& sequence = test.sequences[i];
    for (uint32_t position = sequence.before; position < sequence.tokens(); ++position, ++row) {
      std::vector<uint32_t> keys = sequence.path(position);
      if (test.window != 0 && keys.size() > test.window)
        keys.erase(keys.begin(), keys.end() - test.window);
      for (uint32_t head = 0; head < test.heads; ++head) {
        const float* q = &data.q[(row * test.heads + head) * size];
        const auto kv_row = [&](const CachedRows& rows, uint32_t key) {
          return &rows.numbers[(size_t{key} * test.kv_heads + head / group) * size];
        };
        std::vector<double> scores;
        for (const uint32_t key : keys) {
          const float* k = kv_row(data.keys[i], key);
          double score = 0;
          for (uint32_t d = 0; d < size; ++d) score += double{q[d]} * k[d];
          score *= double{test.scale()};
          if (test.soft_cap != 0)
            score = double{test.soft_cap} * std::tanh(score / double{test.soft_cap});
          scores.push_back(score);
        }
        const double largest = *std::max_element(scores.begin(), scores.end());
        double weights = test.sinks.empty() ? 0 : std::exp(double{test.sinks[head]} - largest);
        std::vector<double> sums(size);
        for (size_t j = 0; j < keys.size(); ++j) {
          const double weight = std::exp(scores[j] - largest);
          const float* v = kv_row(data.values[i], keys[j]);
          weights += weight;
          for (uint32_t d = 0; d < size; ++d) sums[d] += weight * v[d];
        }
        for (const double sum : sums) result.push_back(sum / weights);
      }
    }
  }
  return result;
}

}  // namespace hearth::testing
