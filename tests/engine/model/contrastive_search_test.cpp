// Contrastive search on a device: the tokens are those of the paper's formula, computed on the host
// from plain forward passes: one for each prefix of the prompt, and one for each candidate.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/model_file.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kSearchedTokens = 20;

class ContrastiveSearchTest : public GpuTest {
 protected:
  struct Pass {
    std::vector<double> probabilities;  // of the next token
    std::vector<float> hidden;          // of the last token
  };

  void SetUp() override {
    GpuTest::SetUp();
    ASSERT_ASSIGN(golden_, read_golden_model("llama"));
    ASSERT_ASSIGN(file_, ModelFile::open(golden_.folder));
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = golden_.context}));
    start_runner(KvFormat::kF16);
  }

  void start_runner(KvFormat kv) {
    ASSERT_ASSIGN(runner_, StepRunner::create(device(), pipelines(), *model_,
                                              {.limits = {.rows = 96,
                                                          .sequences = 8,
                                                          .candidates = 32,
                                                          .logit_rows = 40,
                                                          .context = 128,
                                                          .kv = kv},
                                               .slots = 8,
                                               .kv_blocks = 60}));
  }

  std::unique_ptr<Engine> engine(uint32_t pool_blocks, uint32_t max_proposed = 32) {
    return std::make_unique<Engine>(*runner_, nullptr,
                                    EngineOptions{.limits = {.max_sequences = 8,
                                                             .max_step_tokens = 96,
                                                             .context = 128,
                                                             .pool_blocks = pool_blocks,
                                                             .max_proposed = max_proposed},
                                                  .vocabulary = golden_.vocab,
                                                  .check_integrity = true});
  }

  // A forward pass over these tokens.
  Pass pass(const std::vector<uint32_t>& tokens) const {
    StepBatch batch;
    std::vector<uint32_t> table;
    for (uint32_t i = 0; i <= tokens.size() / kTokensPerBlock; ++i) table.push_back(i);
    batch.add_sequence(0, tokens, table);
    const auto last = static_cast<uint32_t>(tokens.size()) - 1;
    batch.sample(last, {});
    batch.pool(last, 1);
    const auto ticket = runner_->submit(batch);
    EXPECT_TRUE(ticket.ok());
    const auto outcome = runner_->wait(*ticket);
    EXPECT_TRUE(outcome.ok());
    Pass pass;
    pass.hidden.assign(outcome->pooled.begin(), outcome->pooled.end());
    double sum = 0;
    for (const float logit : runner_->read_logits(1).value()) {
      pass.probabilities.push_back(std::exp(double{logit}));
      sum += pass.probabilities.back();
    }
    for (double& probability : pass.probabilities) probability /= sum;
    return pass;
  }

  static double cosine(const std::vector<float>& a, const std::vector<float>& b) {
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      dot += double{a[i]} * b[i];
      aa += double{a[i]} * a[i];
      bb += double{b[i]} * b[i];
    }
    return dot / std::sqrt(aa * bb);
  }

  std::vector<uint32_t> expected(const GenerationRequest& request) const {
    const ContrastiveSearchOptions& search = request.contrastive_search;
    std::vector<uint32_t> tokens;
    std::vector<std::vector<float>> before;  // hidden states of all tokens so far
    Pass newest;
    for (const uint32_t token : request.prompt) {
      tokens.push_back(token);
      newest = pass(tokens);
      before.push_back(newest.hidden);
    }
    for (uint32_t i = 0; i < request.max_tokens; ++i) {
      std::vector<uint32_t> order(newest.probabilities.size());
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, std::greater(),
                               [&](uint32_t v) { return newest.probabilities[v]; });
      double best = -10;
      uint32_t best_token = 0;
      Pass chosen;
      for (uint32_t k = 0; k < search.top_k; ++k) {
        std::vector<uint32_t> with = tokens;
        with.push_back(order[k]);
        Pass candidate = pass(with);
        double similarity = -2;
        for (const std::vector<float>& hidden : before)
          similarity = std::max(similarity, cosine(candidate.hidden, hidden));
        const double score =
            (1 - double{search.alpha}) * newest.probabilities[order[k]] - search.alpha * similarity;
        if (score <= best) continue;
        best = score;
        best_token = order[k];
        chosen = std::move(candidate);
      }
      tokens.push_back(best_token);
      newest = std::move(chosen);
      before.push_back(newest.hidden);
    }
    return {tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), tokens.end()};
  }

  std::vector<GenerationRequest> requests() const {
    std::vector<GenerationRequest> requests;
    for (size_t i = 0; i < std::min<size_t>(golden_.prompts.size(), 4); ++i) {
      GenerationRequest& request = requests.emplace_back();
      request.prompt = golden_.prompts[i];
      request.max_tokens = kSearchedTokens;
      request.contrastive_search = {.alpha = i == 0 ? 0.4f : 0.6f,
                                    .top_k = 3 + static_cast<uint32_t>(i)};
    }
    // One that samples, in the same batch.
    requests.push_back(
        {.prompt = golden_.prompts[1], .sampling = {.temperature = 0}, .max_tokens = 15});
    return requests;
  }

  static std::vector<std::vector<uint32_t>> generated(
      Engine& engine, const std::vector<GenerationRequest>& requests) {
    auto streams = engine.submit(requests);
    EXPECT_TRUE(streams.ok()) << streams.error().message;
    std::vector<std::vector<uint32_t>> ids;
    if (!streams.ok()) return ids;
    for (TokenStream& stream : *streams) {
      ids.emplace_back();
      while (const auto token = stream.next()) ids.back().push_back(token->id);
      EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
    }
    return ids;
  }

  GoldenModel golden_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
};

TEST_F(ContrastiveSearchTest, GeneratesWhatTheFormulaSays) {
  const std::vector<GenerationRequest> requests = this->requests();
  const auto plenty = generated(*engine(60), requests);
  ASSERT_EQ(plenty.size(), requests.size());
  uint64_t preemptions = 0;
  for (uint32_t blocks = 10; blocks <= 20; ++blocks) {
    const auto tight = engine(blocks);
    EXPECT_EQ(generated(*tight, requests), plenty) << blocks << " blocks";
    preemptions += tight->metrics().preemptions_recompute.value();
  }
  EXPECT_GT(preemptions, 0u);
  EXPECT_EQ(generated(*engine(60, 2), requests), plenty) << "candidates in several steps";
  std::vector<GenerationRequest> greedy = requests;
  for (GenerationRequest& request : greedy) {
    request.contrastive_search = {};
    request.sampling.temperature = 0;
  }
  const auto most_probable = generated(*engine(60), greedy);
  uint32_t different = 0;
  for (size_t i = 0; i + 1 < requests.size(); ++i) {
    EXPECT_EQ(plenty[i], expected(requests[i])) << "request " << i;
    if (most_probable[i] != plenty[i]) ++different;
  }
  EXPECT_GT(different, 1u) << "the search makes no difference";
}

// The scales of a candidate's keys and values move with them.
TEST_F(ContrastiveSearchTest, GeneratesWhatTheFormulaSaysWithAQ8_0Cache) {
  start_runner(KvFormat::kQ8_0);
  const std::vector<GenerationRequest> requests = this->requests();
  const auto searched = generated(*engine(60), requests);
  ASSERT_EQ(searched.size(), requests.size());
  for (size_t i = 0; i + 1 < requests.size(); ++i)
    EXPECT_EQ(searched[i], expected(requests[i])) << "request " << i;
}

}  // namespace
}  // namespace hearth::testing
