// Runs the sampling kernels on rows of logits and compares every row with the reference.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/unread_token.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_judging.h"
#include "tests/support/reference_sampling.h"

namespace hearth::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kLogprobLimit = 1e-5;
// If a filter's edge or the two best scores are this close, f32 rounding decides.
inline constexpr double kMargin = 2e-6;
inline constexpr double kDrawMargin = 5e-5;

struct Sampled {
  std::vector<uint32_t> ids;
  std::vector<params::SamplingResult> results;
  std::vector<params::TokenLogprob> top;
  std::vector<params::TokenCount> history;
  std::vector<uint32_t> history_lengths;
  std::vector<float> mirostat;  // per row, and the same per slot
  std::vector<float> mirostat_slots;
  std::vector<uint32_t> wanted_accepted;  // given the results' ids
};

class SamplingGpuTest : public GpuTest {
 protected:
  static constexpr uint32_t kHistoryCapacity = 64;

  // A plan for GPUs, on this device.
  SamplingPlan gpu_plan(const SamplingShape& shape, uint32_t shared_bytes = 32768,
                        uint32_t most_lanes = 1024) {
    DeviceCaps gpu = device().caps();
    gpu.type = DeviceType::kDiscrete;
    gpu.limits.max_shared_bytes = shared_bytes;
    gpu.limits.max_group_invocations = std::min(most_lanes, gpu.limits.max_group_invocations);
    return choose_sampling(gpu, shape);
  }

  // The step's words, which have the rows' proposals, masks and stages, and the places that unread
  // proposals are in. On a path every third proposal is another's.
  struct Extras {
    uint32_t first_place = 0;
    std::vector<uint32_t> words = {0xdeadbeef}, places = {};
    std::vector<std::vector<uint32_t>> proposed = {};  // per row

    void add(const ReferenceRow& row, params::SamplingRow& to) {
      std::vector<uint32_t>& ids = proposed.emplace_back();
      VerifiedPlace place{.proposals = static_cast<uint32_t>(words.size())};
      for (const uint32_t token : row.path) {
        if (ids.size() % 3 == 1 && ids.size() < 16) ids.push_back(3);
        place.path |= 1u << ids.size();
        ids.push_back(token);
      }
      words.insert(words.end(), ids.begin(), ids.end());
      for (const uint32_t token : row.followers) {
        if (ids.size() % 4 == 2) {
          ids.push_back(token);  // it follows another row
          words.push_back(token);
        }
        place.followers |= 1u << ids.size();
        const bool unread = ids.size() % 2 == 1;
        words.push_back(unread ? unread_token(first_place + static_cast<uint32_t>(places.size()))
                               : token);
        if (unread) places.push_back(token);
        ids.push_back(token);
      }
      if (!ids.empty()) verify_only(to, place);
      if (!row.mask.empty()) {
        use_mask(to, static_cast<uint32_t>(words.size()));
        words.resize(words.size() + (row.mask.size() + 31) / 32);
        for (size_t token = 0; token < row.mask.size(); ++token)
          if (row.mask[token]) words[to.mask + token / 32] |= 1u << token % 32;
      }
      if (!row.dry.empty()) {
        to.flags |= params::kSamplingDry;
        to.dry = static_cast<uint32_t>(words.size());
        words.push_back(static_cast<uint32_t>(row.dry.size()));
        for (const auto& [token, penalty] : row.dry) {
          words.push_back(token);
          words.push_back(std::bit_cast<uint32_t>(penalty));
        }
      }
      if (has_stages(to)) {
        params::SamplingStages stages = make_stages(row.options);
        stages.mirostat_mu = static_cast<float>(row.mirostat_mu);
        stages.mirostat_write_slot = to.history_slot;
        to.stages = static_cast<uint32_t>(words.size());
        const auto bits =
            std::bit_cast<std::array<uint32_t, sizeof(stages) / sizeof(uint32_t)>>(stages);
        words.insert(words.end(), bits.begin(), bits.end());
      }
    }
  };

  // Every row has its own slot, and ids are written in reverse order, except those of rows with
  // proposals, which are not written.
  Sampled sample(const SamplingPlan& plan, uint32_t vocab, const std::vector<float>& logits,
                 const std::vector<ReferenceRow>& rows, uint32_t runs = 1) {
    const auto count = static_cast<uint32_t>(rows.size());
    const bool with_extras = plan.scan.pipeline.constants["kExtras"] != 0;
    Extras extras{.first_place = count};
    std::vector<params::SamplingRow> row_params;
    std::vector<params::TokenBias> biases(1);
    std::vector<params::TokenCount> history(size_t{count} * kHistoryCapacity);
    std::vector<uint32_t> lengths;
    for (uint32_t r = 0; r < count; ++r) {
      const auto row = make_sampling_row(
          rows[r].options, {.id_index = count - 1 - r,
                            .counter = rows[r].counter,
                            .bias_offset = static_cast<uint32_t>(biases.size()),
                            .bias_count = static_cast<uint32_t>(rows[r].biases.size()),
                            .history_slot = r,
                            .append = plan.pick.has_value()});
      EXPECT_TRUE(row.ok()) << row.error().message;
      row_params.push_back(*row);
      extras.add(rows[r], row_params.back());
      biases.insert(biases.end(), rows[r].biases.begin(), rows[r].biases.end());
      std::copy(rows[r].history.begin(), rows[r].history.end(),
                history.begin() + size_t{r} * kHistoryCapacity);
      lengths.push_back(static_cast<uint32_t>(rows[r].history.size()));
    }
    const Buffer logits_buffer = filled(logits), rows_buffer = filled(row_params);
    const Buffer biases_buffer = filled(biases), history_buffer = filled(history);
    const Buffer lengths_buffer = filled(lengths), scratch = poisoned(plan.scratch_bytes());
    std::vector<uint32_t> places(count, 0xffffffffu);
    places.insert(places.end(), extras.places.begin(), extras.places.end());
    const Buffer ids = filled(places), counts = filled(std::vector<uint32_t>(count, 0));
    const Buffer words = filled(extras.words);
    const Buffer mirostat_slots = poisoned(count * 4), mirostat = poisoned(count * 4);
    const Buffer results = poisoned(count * sizeof(params::SamplingResult));
    const Buffer top =
        poisoned(uint64_t{count} * params::kMaxTopLogprobs * sizeof(params::TokenLogprob));
    run([&](CommandRecorder& recorder) -> Status {
      for (uint32_t i = 0; i < runs; ++i)
        HEARTH_TRY(record_sampling(recorder, pipelines(), plan,
                                   {.logits = logits_buffer.all(),
                                    .rows = rows_buffer.all(),
                                    .biases = biases_buffer.all(),
                                    .history_lengths = lengths_buffer.all(),
                                    .history = history_buffer.all(),
                                    .scratch = scratch.all(),
                                    .counts = counts.all(),
                                    .ids = ids.all(),
                                    .results = results.all(),
                                    .top = top.all(),
                                    .words = words.all(),
                                    .mirostat = mirostat_slots.all(),
                                    .mirostat_rows = mirostat.all(),
                                    .shape = {.rows = count,
                                              .vocab = vocab,
                                              .greedy = !plan.pick,
                                              .extras = with_extras,
                                              .stages = plan.stages.has_value()},
                                    .history_capacity = kHistoryCapacity}));
      return {};
    });
    Sampled sampled{.ids = read<uint32_t>(ids),
                    .results = read<params::SamplingResult>(results),
                    .top = read<params::TokenLogprob>(top),
                    .history = read<params::TokenCount>(history_buffer),
                    .history_lengths = read<uint32_t>(lengths_buffer),
                    .mirostat = read<float>(mirostat),
                    .mirostat_slots = read<float>(mirostat_slots)};
    for (uint32_t r = 0; r < count; ++r)
      sampled.wanted_accepted.push_back(
          reference_accepted(row_params[r].followers, extras.proposed[r], sampled.results[r].id));
    EXPECT_EQ(read<uint32_t>(counts), std::vector<uint32_t>(count, 0));
    sampled.ids.resize(count);
    std::reverse(sampled.ids.begin(), sampled.ids.end());
    return sampled;
  }

  void check_top(const Sampled& sampled, size_t r, const ReferenceSample& reference,
                 const ReferenceRow& row) {
    for (uint32_t i = 0; i < params::kMaxTopLogprobs; ++i) {
      const params::TokenLogprob& entry = sampled.top[r * params::kMaxTopLogprobs + i];
      if (i >= row.options.top_logprobs) {
        EXPECT_EQ(entry.id, 0xffffffffu);
        EXPECT_TRUE(std::isnan(entry.logprob)) << "written past the requested count";
      } else if (i >= reference.candidates.size()) {
        EXPECT_EQ(entry.id, params::kNoToken);
        EXPECT_EQ(entry.logprob, -kInfinity);
      } else {
        EXPECT_EQ(entry.id, reference.candidates[i].id) << "rank " << i;
        EXPECT_NEAR(entry.logprob, reference.candidates[i].logprob, kLogprobLimit);
      }
    }
  }

  // Samples and compares every row; returns how many were too close to decide.
  int check(const SamplingPlan& plan, uint32_t vocab, const std::vector<float>& logits,
            const std::vector<ReferenceRow>& rows, double margin = kMargin) {
    const Sampled sampled = sample(plan, vocab, logits, rows);
    int close = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      SCOPED_TRACE(::testing::Message()
                   << "row " << r << " of " << rows.size() << ", vocab " << vocab << ", "
                   << plan.pick.value_or(plan.scan).pipeline.constants.workgroup_size()
                   << " lanes");
      const auto row_logits = std::span(logits).subspan(r * vocab, vocab);
      const ReferenceSample reference = reference_sample(row_logits, rows[r], kHistoryCapacity);
      const params::SamplingResult& result = sampled.results[r];
      const bool verifies = !rows[r].path.empty() || !rows[r].followers.empty();
      EXPECT_EQ(verifies ? 0xffffffffu : result.id, sampled.ids[r]);
      EXPECT_LT(result.id, vocab);
      EXPECT_EQ(result.accepted, reference.candidates.empty() ? 0u : sampled.wanted_accepted[r]);
      check_top(sampled, r, reference, rows[r]);
      if (reference.edge_margin < margin || reference.draw_margin < kDrawMargin) {
        ++close;
        continue;
      }
      EXPECT_EQ(result.id, reference.id);
      EXPECT_EQ(result.kept, reference.kept);
      if (reference.candidates.empty())
        EXPECT_EQ(result.logprob, -kInfinity);
      else
        EXPECT_NEAR(result.logprob, reference.logprob, kLogprobLimit);
    }
    return close;
  }
};

}  // namespace hearth::testing
