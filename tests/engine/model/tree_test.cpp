// Trees of proposed tokens through the runner: every row is computed as if its sequence were the
// tokens before the tree and the row's path.
#include <cmath>
#include <map>
#include <span>

#include "engine/sampling/sampler.h"
#include "params/embed.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

// Twelve rows, four levels; the path of a row is in general not the rows before it.
constexpr uint32_t kRoot = kTreeRoot;
const std::vector<uint32_t> kParents = {kRoot, kRoot, 0, 0, 1, 2, 3, 3, kRoot, 5, 6, 8};
constexpr uint32_t kTreePrompt = 21, kOther = 30;
// NMSE. The kernels of trees and of plain sequences may round differently, and some keys and values
// then become others in a Q8_0 cache. Such a cache itself costs this model 1e-4 to 5e-4;
// logits of two different paths differ by 0.3.
constexpr double kQ8Limit = 1e-3;

std::vector<uint32_t> path_of(uint32_t row) {
  std::vector<uint32_t> rows;
  for (uint32_t at = row; at != kTreeRoot; at = kParents[at]) rows.insert(rows.begin(), at);
  return rows;
}

class TreeTest : public GpuTest {
 protected:
  Result<TinyModel> open(bool deterministic, KvFormat kv = KvFormat::kF16) {
    return TinyModel::open(device(), pipelines(),
                           {.limits = {.rows = 80,
                                       .sequences = 3,
                                       .logit_rows = 40,
                                       .context = 80,
                                       .kv = kv,
                                       .deterministic = deterministic},
                            .slots = 3,
                            .kv_blocks = 15});
  }

  // Each slot has five blocks of its own, in no order.
  static std::vector<BlockId> blocks(uint32_t slot) {
    return {slot * 5 + 3, slot * 5, slot * 5 + 4, slot * 5 + 2, slot * 5 + 1};
  }

  static std::vector<params::SamplingResult> run(const TinyModel& tiny, const StepBatch& batch) {
    const auto ticket = tiny.runner->submit(batch);
    EXPECT_TRUE(ticket.ok()) << ticket.error().message;
    if (!ticket.ok()) return std::vector<params::SamplingResult>(batch.sampling.size());
    const StepOutcome outcome = tiny.runner->wait(*ticket).value();
    return {outcome.sampled.begin(), outcome.sampled.end()};
  }

  static std::vector<float> logits(const TinyModel& tiny, uint32_t rows, uint32_t row) {
    const size_t vocabulary = tiny.model->config().vocabulary;
    const std::vector<float> all = tiny.runner->read_logits(rows).value();
    return {all.begin() + row * vocabulary, all.begin() + (row + 1) * vocabulary};
  }
};

// The tree is in a step with a prompt and a single token, after all of its own prompt, a part, or
// nothing was computed.
TEST_F(TreeTest, ARowHasTheLogitsOfThePlainSequenceAlongItsPath) {
  struct Case {
    bool deterministic;
    KvFormat kv;
  };
  for (const auto& [deterministic, kv] : {Case{true, KvFormat::kF16}, {false, KvFormat::kQ8_0}}) {
    ASSERT_ASSIGN(const TinyModel tiny, open(deterministic, kv));
    const std::vector<uint32_t> prompt = tiny.prompt(kTreePrompt, 0),
                                other = tiny.prompt(kOther, 1);
    const std::vector<uint32_t> proposed = tiny.prompt(static_cast<uint32_t>(kParents.size()), 5);
    const auto rows = static_cast<uint32_t>(kParents.size());

    // The plain sequences, one after the other in slot 0.
    std::vector<std::vector<float>> wanted;
    for (uint32_t row = 0; row < rows; ++row) {
      std::vector<uint32_t> ids = prompt;
      for (const uint32_t at : path_of(row)) ids.push_back(proposed[at]);
      StepBatch batch;
      batch.add_sequence(0, ids, blocks(0));
      batch.sample(static_cast<uint32_t>(ids.size()) - 1, {});
      run(tiny, batch);
      wanted.push_back(logits(tiny, 1, 0));
    }

    for (const uint32_t computed : {kTreePrompt - 1, 7u, 0u}) {
      StepBatch before, batch;
      if (computed > 0) before.add_sequence(0, std::span(prompt).first(computed), blocks(1));
      before.add_sequence(0, std::span(other).first(9), blocks(2));
      run(tiny, before);
      batch.add_sequence(9, std::span(other).subspan(9, 1), blocks(2));
      std::vector<uint32_t> ids(prompt.begin() + computed, prompt.end());
      ids.insert(ids.end(), proposed.begin(), proposed.end());
      batch.add_sequence(computed, ids, blocks(1), kParents);
      const uint32_t first = static_cast<uint32_t>(batch.ids.size()) - rows;
      batch.add_sequence(0, other, blocks(0));
      for (uint32_t row = 0; row < rows; ++row) batch.sample(first + row, {});
      batch.sample(0, {});
      run(tiny, batch);
      for (uint32_t row = 0; row < rows; ++row)
        EXPECT_LT(nmse(logits(tiny, rows + 1, row),
                       std::vector<double>(wanted[row].begin(), wanted[row].end())),
                  kv == KvFormat::kF16 ? 1e-5 : kQ8Limit)
            << "row " << row << " after " << computed;
      const std::vector<float> single = logits(tiny, rows + 1, rows);

      // The single token of the other sequence, without a tree next to it.
      StepBatch alone;
      alone.add_sequence(9, std::span(other).subspan(9, 1), blocks(2));
      alone.sample(0, {});
      run(tiny, alone);
      const std::vector<float> plain = logits(tiny, 1, 0);
      // With matrix units it goes through other kernels than alone.
      EXPECT_LT(nmse(single, std::vector<double>(plain.begin(), plain.end())), 1e-5);
    }
  }
}

// Tree rows that are stored in the order of their path stay valid: a later step can continue after
// them and overwrite the rest.
TEST_F(TreeTest, RowsInOrderStayInTheCache) {
  ASSERT_ASSIGN(const TinyModel tiny, open(true));
  const std::vector<uint32_t> prompt = tiny.prompt(kTreePrompt, 0), proposed = tiny.prompt(4, 5);
  // Rows 0 and 1 are a path from the root, rows 2 and 3 are not on it.
  const std::vector<uint32_t> parents = {kRoot, 0, 0, kRoot};
  StepBatch tree, next, plain;
  std::vector<uint32_t> ids = prompt;
  ids.insert(ids.end(), proposed.begin(), proposed.end());
  tree.add_sequence(0, ids, blocks(0), parents);
  run(tiny, tree);
  next.add_sequence(kTreePrompt + 2, std::vector<uint32_t>{17}, blocks(0));
  next.sample(0, {});
  run(tiny, next);
  const std::vector<float> found = logits(tiny, 1, 0);
  ids.resize(kTreePrompt + 2);
  ids.push_back(17);
  plain.add_sequence(0, ids, blocks(1));
  plain.sample(kTreePrompt + 2, {});
  run(tiny, plain);
  EXPECT_EQ(found, logits(tiny, 1, 0));
}

// The next step computes an accepted path again, where its tokens belong, and continues after it:
// nothing of the tree is left.
TEST_F(TreeTest, AnAcceptedPathIsAnOrdinarySequence) {
  for (const KvFormat kv : {KvFormat::kF16, KvFormat::kQ8_0}) {
    ASSERT_ASSIGN(const TinyModel tiny, open(true, kv));
    const std::vector<uint32_t> prompt = tiny.prompt(kTreePrompt, 0);
    const std::vector<uint32_t> proposed = tiny.prompt(static_cast<uint32_t>(kParents.size()), 5);
    std::vector<uint32_t> ids = prompt;
    ids.insert(ids.end(), proposed.begin(), proposed.end());
    for (const uint32_t last : {0u, 4u, 9u, 10u, 11u}) {
      StepBatch tree, next, plain;
      tree.add_sequence(0, ids, blocks(0), kParents);
      run(tiny, tree);
      // Another sequence, of whose tree another path is accepted.
      tree.clear();
      tree.add_sequence(0, ids, blocks(1), kParents);
      run(tiny, tree);
      const std::vector<uint32_t> path = path_of(last), other = path_of(7);
      const auto continued = [&](const std::vector<uint32_t>& rows, std::vector<uint32_t> after) {
        std::vector<uint32_t> tokens;
        for (const uint32_t row : rows) tokens.push_back(proposed[row]);
        tokens.insert(tokens.end(), after.begin(), after.end());
        return tokens;
      };
      next.add_sequence(kTreePrompt, continued(path, {17, 18}), blocks(0));
      next.sample(static_cast<uint32_t>(next.ids.size()) - 1, {});
      next.add_sequence(kTreePrompt, continued(other, {17}), blocks(1));
      next.sample(static_cast<uint32_t>(next.ids.size()) - 1, {});
      run(tiny, next);
      const std::vector<float> found[] = {logits(tiny, 2, 0), logits(tiny, 2, 1)};
      const auto expect = [&](const std::vector<uint32_t>& rows, std::vector<uint32_t> after,
                              const std::vector<float>& logits_found) {
        std::vector<uint32_t> whole = prompt;
        for (const uint32_t row : rows) whole.push_back(proposed[row]);
        whole.insert(whole.end(), after.begin(), after.end());
        StepBatch batch;
        batch.add_sequence(0, whole, blocks(2));
        batch.sample(static_cast<uint32_t>(whole.size()) - 1, {});
        run(tiny, batch);
        const std::vector<float> wanted = logits(tiny, 1, 0);
        EXPECT_LT(nmse(logits_found, std::vector<double>(wanted.begin(), wanted.end())),
                  kv == KvFormat::kF16 ? 1e-5 : 1e-4)
            << "path to " << rows.back();
      };
      expect(path, {17, 18}, found[0]);
      expect(other, {17}, found[1]);
    }
  }
}

// Sampling along every path, with penalties for the tokens on it, as plain decoding does it.
TEST_F(TreeTest, PenaltiesFollowThePath) {
  ASSERT_ASSIGN(const TinyModel tiny, open(true));
  const std::vector<uint32_t> prompt = tiny.prompt(kTreePrompt, 0);
  const std::vector<uint32_t> proposed = tiny.prompt(static_cast<uint32_t>(kParents.size()), 5);
  const SamplingOptions options{
      .temperature = 0, .repetition_penalty = 1.2f, .frequency_penalty = 2.0f, .top_logprobs = 0};
  const auto row_of = [&](uint32_t slot) {
    return make_sampling_row(options, {.id_index = slot, .history_slot = slot}).value();
  };
  const std::vector<params::TokenCount> history = {{.token = prompt[2], .count = 0},
                                                   {.token = proposed[0], .count = 1}};
  ASSERT_OK(tiny.runner->set_history(1, history));
  std::vector<uint32_t> ids = prompt;
  ids.insert(ids.end(), proposed.begin(), proposed.end());
  StepBatch batch;
  batch.add_sequence(0, ids, blocks(1), kParents);
  const uint32_t proposals = batch.add_proposals(proposed);
  for (uint32_t row = 0; row < kParents.size(); ++row) {
    params::SamplingRow sampling = row_of(1);
    verify_only(sampling, {.proposals = proposals, .path = batch.ancestors[kTreePrompt + row]});
    batch.sample(kTreePrompt + row, sampling);
  }
  const std::vector<params::SamplingResult> results = run(tiny, batch);
  for (uint32_t row = 0; row < kParents.size(); ++row) {
    std::vector<uint32_t> path_ids = prompt;
    std::vector<params::TokenCount> counted = history;
    for (const uint32_t at : path_of(row)) {
      path_ids.push_back(proposed[at]);
      if (at == 0)
        ++counted[1].count;
      else
        counted.push_back({.token = proposed[at], .count = 1});
    }
    ASSERT_OK(tiny.runner->set_history(0, counted));
    StepBatch plain;
    plain.add_sequence(0, path_ids, blocks(0));
    plain.sample(static_cast<uint32_t>(path_ids.size()) - 1, row_of(0));
    const params::SamplingResult wanted = run(tiny, plain)[0];
    EXPECT_EQ(results[row].id, wanted.id) << row;
    EXPECT_NEAR(results[row].logprob, wanted.logprob, 1e-3) << row;
  }
}

TEST_F(TreeTest, AChainIsNoTree) {
  StepBatch batch;
  const std::vector<uint32_t> ids(5, 1), block = {0};
  batch.add_sequence(3, ids, block, std::vector<uint32_t>{kRoot, 0, 1, 2});
  EXPECT_TRUE(batch.ancestors.empty());
  batch.add_sequence(3, ids, block, std::vector<uint32_t>{kRoot, 0, 0});
  batch.add_sequence(3, ids, block);
  EXPECT_EQ(batch.ancestors, (std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 1, 3, 5}));
  batch.clear();
  EXPECT_TRUE(batch.ancestors.empty());
}

// Steps without trees use the kernels they have always used.
TEST_F(TreeTest, StepsWithoutTreesAreRecordedApart) {
  ASSERT_ASSIGN(const TinyModel tiny, open(true));
  StepBatch plain, tree;
  const std::vector<uint32_t> ids = tiny.prompt(8, 0);
  plain.add_sequence(0, ids, blocks(0));
  tree.add_sequence(0, ids, blocks(0), std::vector<uint32_t>{kRoot, kRoot});
  run(tiny, plain);
  EXPECT_EQ(tiny.runner->recorded_steps(), 1u);
  run(tiny, tree);
  EXPECT_EQ(tiny.runner->recorded_steps(), 2u);
  run(tiny, plain);
  EXPECT_EQ(tiny.runner->recorded_steps(), 2u);
}

}  // namespace
}  // namespace hearth::testing
