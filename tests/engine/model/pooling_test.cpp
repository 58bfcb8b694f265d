// Embeddings on a device. The logits of a model are a product of the hidden states that are pooled,
// so the golden logits say what those must be. And in an engine: embeddings of long prompts beside
// running streams, which do not change.
#include "engine/pooling.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/half.h"
#include "engine/weights/model_file.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

// The matrix of the logits, [vocab, width].
std::vector<float> output_matrix(const ModelFile& file) {
  const ModelTensor* tensor = file.find("output.weight");
  if (tensor == nullptr) tensor = file.find("token_embd.weight");
  std::vector<float> values(tensor->rows * tensor->cols);
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensor->format == WeightFormat::kF32) {
      std::memcpy(&values[i], tensor->bytes.data() + i * 4, 4);
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, tensor->bytes.data() + i * 2, 2);
    values[i] =
        tensor->format == WeightFormat::kBf16 ? bfloat16_to_float(bits) : half_to_float(bits);
  }
  return values;
}

class PooledGoldenTest : public GpuTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(PooledGoldenTest, HiddenStatesLeadToTheGoldenLogits) {
  ASSERT_ASSIGN(const GoldenModel golden, read_golden_model(GetParam()));
  ASSERT_ASSIGN(const auto file, ModelFile::open(golden.folder));
  ASSERT_ASSIGN(const auto model, Model::load(device(), *file, {.context = golden.context}));
  const auto prompts = static_cast<uint32_t>(golden.prompts.size());
  // Far fewer logit rows than rows: pooling must not need them.
  StepRunnerOptions options{
      .limits = {.rows = 160, .sequences = 8, .logit_rows = 8, .context = golden.context},
      .slots = 8};
  std::vector<std::vector<uint32_t>> tables(prompts);
  for (uint32_t p = 0; p < prompts; ++p)
    for (size_t i = 0; i <= golden.prompts[p].size() / kTokensPerBlock; ++i)
      tables[p].push_back(options.kv_blocks++);
  ASSERT_ASSIGN(const auto runner, StepRunner::create(device(), pipelines(), *model, options));
  const std::vector<float> matrix = output_matrix(*file);
  const uint32_t width = model->config().width;
  const double cap = model->config().logit_soft_cap;

  for (const Pooling kind : {Pooling::kMean, Pooling::kLast}) {
    for (const uint32_t chunk : {1u, 7u, 160u / prompts}) {
      std::vector<PoolingState> states;
      for (const auto& prompt : golden.prompts)
        states.emplace_back(kind, static_cast<uint32_t>(prompt.size()));
      std::vector<uint32_t> done(prompts, 0);
      for (bool any = true; any;) {
        StepBatch batch;
        std::vector<std::array<uint32_t, 3>> pooled;  // prompt, first range, ranges
        std::vector<uint32_t> sampled;                // prompts whose last logits are wanted
        for (uint32_t p = 0; p < prompts; ++p) {
          const std::vector<uint32_t>& prompt = golden.prompts[p];
          const auto count =
              std::min<uint32_t>(chunk, static_cast<uint32_t>(prompt.size()) - done[p]);
          if (count == 0) continue;
          const auto row = static_cast<uint32_t>(batch.ids.size());
          batch.add_sequence(done[p], std::span(prompt).subspan(done[p], count), tables[p]);
          const PoolingState::Tokens tokens = states[p].take(done[p], count);
          if (tokens.count > 0) {
            const auto first = static_cast<uint32_t>(batch.pools.size());
            pooled.push_back({p, first, batch.pool(row + tokens.first - done[p], tokens.count)});
          }
          done[p] += count;
          if (done[p] < prompt.size()) continue;
          batch.logit_rows.push_back(row + count - 1);
          batch.sampling.push_back({});
          sampled.push_back(p);
        }
        any = !batch.sequences.empty();
        if (!any) break;
        ASSERT_ASSIGN(const StepTicket ticket, runner->submit(batch));
        ASSERT_ASSIGN(const StepOutcome outcome, runner->wait(ticket));
        for (const auto& [p, first, ranges] : pooled)
          states[p].add(outcome.pooled.subspan(first * width, ranges * width), ranges);
        if (sampled.empty()) continue;
        // The logits of a step that pools are right, too.
        ASSERT_ASSIGN(const std::vector<float> logits,
                      runner->read_logits(static_cast<uint32_t>(sampled.size())));
        for (size_t i = 0; i < sampled.size(); ++i) {
          const auto last = golden.logits(sampled[i], golden.prompts[sampled[i]].size() - 1);
          EXPECT_LT(nmse(std::span(logits).subspan(i * golden.vocab, golden.vocab),
                         std::vector<double>(last.begin(), last.end())),
                    1e-5);
        }
      }
      for (uint32_t p = 0; p < prompts; ++p) {
        const std::vector<float> mean = states[p].mean();
        ASSERT_EQ(mean.size(), width);
        std::vector<float> got(golden.vocab);
        for (size_t t = 0; t < got.size(); ++t) {
          double sum = 0;
          for (uint32_t i = 0; i < width; ++i) sum += double{matrix[t * width + i]} * mean[i];
          got[t] = static_cast<float>(sum);
        }
        std::vector<double> wanted(golden.vocab, 0.0);
        const size_t tokens = golden.prompts[p].size();
        const size_t first = kind == Pooling::kMean ? 0 : tokens - 1;
        for (size_t position = first; position < tokens; ++position) {
          const std::span<const float> logits = golden.logits(p, position);
          for (size_t t = 0; t < wanted.size(); ++t)
            wanted[t] += (cap > 0 ? cap * std::atanh(logits[t] / cap) : double{logits[t]}) /
                         static_cast<double>(tokens - first);
        }
        EXPECT_LT(nmse(got, wanted), 1e-5) << "prompt " << p << ", chunks of " << chunk;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PooledGoldenTest, ::testing::Values("llama", "qwen3", "gemma2", "phi3"),
                         [](const auto& model) { return model.param; });

class PooledEngineTest : public GpuTest {};

TEST_F(PooledEngineTest, LongPromptsRunBesideStreams) {
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), pipelines(),
                                                      {.limits = {.rows = 64,
                                                                  .sequences = 8,
                                                                  .logit_rows = 8,
                                                                  .context = 256,
                                                                  .deterministic = true},
                                                       .slots = 8,
                                                       .kv_blocks = 128}));
  const auto embedding_of = [&](uint32_t i) {
    return GenerationRequest{.prompt = tiny.prompt(30 + 60 * i, i),
                             .pooling = i % 2 == 0 ? Pooling::kMean : Pooling::kLast};
  };
  const auto stream_of = [&](uint32_t i) {
    GenerationRequest request{.prompt = tiny.prompt(10 + i, 50 + i), .max_tokens = 40};
    request.sampling.temperature = 0;
    return request;
  };
  const auto ids_of = [](TokenStream& stream) {
    std::vector<TokenId> ids;
    while (const auto token = stream.next()) ids.push_back(token->id);
    return ids;
  };
  constexpr uint32_t kEach = 4;
  std::vector<std::vector<TokenId>> ids_alone;
  std::vector<std::vector<float>> embeddings_alone;
  {
    const auto engine = tiny.engine();
    for (uint32_t i = 0; i < kEach; ++i) {
      ASSERT_ASSIGN(TokenStream stream, engine->submit(stream_of(i)));
      ids_alone.push_back(ids_of(stream));
      ASSERT_ASSIGN(TokenStream embedding, engine->submit(embedding_of(i)));
      ids_of(embedding);
      ASSERT_EQ(embedding.end().embedding.size(), tiny.model->config().width)
          << embedding.end().message;
      embeddings_alone.push_back(embedding.end().embedding);
    }
  }
  const auto engine = tiny.engine();
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < kEach; ++i) {
    requests.push_back(stream_of(i));
    requests.push_back(embedding_of(i));
  }
  ASSERT_ASSIGN(std::vector<TokenStream> streams, engine->submit(std::move(requests)));
  for (uint32_t i = 0; i < kEach; ++i) {
    EXPECT_EQ(ids_of(streams[2 * i]), ids_alone[i]);
    ids_of(streams[2 * i + 1]);
    const std::vector<float>& alone = embeddings_alone[i];
    EXPECT_LT(
        nmse(streams[2 * i + 1].end().embedding, std::vector<double>(alone.begin(), alone.end())),
        1e-9);
  }
}

}  // namespace
}  // namespace hearth::testing
