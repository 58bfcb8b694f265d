// Compares every architecture with logits computed by PyTorch and transformers, using the paged KV
// cache: prompts of different lengths in one ragged batch, whole, in chunks and token by token;
// with the weights as they are and in F16, with the KV cache in F16 and in Q8_0.
#include "tests/support/golden.h"

#include <filesystem>
#include <memory>

#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/weights/half.h"
#include "engine/weights/model_file.h"
#include "engine/weights/stored_tensor.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kStepRows = 160;

// A copy of a model with its matrices in F16, in which the weights of golden models are exact.
class HalfModel : public ModelFile {
 public:
  explicit HalfModel(const ModelFile& file) : ModelFile(file.kind(), file.name() + " in F16") {
    metadata_ = file.metadata();
    tensors_.assign(file.tensors().begin(), file.tensors().end());
    for (ModelTensor& tensor : tensors_) {
      const bool quantized = !format_info(tensor.format).is_float();
      if (tensor.rows == 1 || tensor.format == WeightFormat::kF16 || quantized) continue;
      halves_.push_back(in_half(tensor));
      tensor.format = WeightFormat::kF16;
      tensor.bytes = std::as_bytes(std::span(halves_.back()));
      tensor.strides.reset();
    }
  }
  size_t converted() const { return halves_.size(); }

 private:
  static std::vector<uint16_t> in_half(const ModelTensor& tensor) {
    std::vector<std::byte> plain(tensor.plain_bytes());
    read_tensor_rows(tensor, 0, tensor.rows, plain);
    std::vector<uint16_t> halves(tensor.rows * tensor.cols);
    for (size_t i = 0; i < halves.size(); ++i) {
      float value = 0;
      if (tensor.format == WeightFormat::kBf16) {
        uint16_t bits = 0;
        std::memcpy(&bits, plain.data() + i * sizeof(bits), sizeof(bits));
        value = bfloat16_to_float(bits);
      } else {
        std::memcpy(&value, plain.data() + i * sizeof(value), sizeof(value));
      }
      halves[i] = float_to_half(value);
      EXPECT_EQ(half_to_float(halves[i]), value) << tensor.name;
    }
    return halves;
  }

  std::vector<std::vector<uint16_t>> halves_;
};

class GoldenTest : public GpuTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void load(const StepLimits& limits, bool in_half = false) {
    ASSERT_ASSIGN(golden_, read_golden_model(GetParam()));
    ASSERT_ASSIGN(file_, ModelFile::open(golden_.folder));
    if (in_half) {
      auto half = std::make_unique<HalfModel>(*file_);
      original_ = std::exchange(file_, std::move(half));
    }
    ASSERT_ASSIGN(model_, Model::load(device(), *file_, {.context = golden_.context}));
    ASSERT_EQ(model_->config().vocabulary, golden_.vocab);
    StepRunnerOptions options{.limits = limits, .slots = 8};
    options.limits.context = golden_.context;
    for (const auto& prompt : golden_.prompts)
      options.kv_blocks += static_cast<uint32_t>(prompt.size() / kTokensPerBlock + 1);
    ASSERT_ASSIGN(runner_, StepRunner::create(device(), pipelines(), *model_, options));
    // Assigns blocks in an unusual order: from the end of the pool, alternating between prompts.
    tables_.assign(golden_.prompts.size(), {});
    uint32_t next = options.kv_blocks;
    for (uint32_t round = 0; next > 0; ++round)
      for (size_t p = 0; p < golden_.prompts.size(); ++p)
        if (round <= golden_.prompts[p].size() / kTokensPerBlock) tables_[p].push_back(--next);
  }

  // Runs all prompts, `chunk` tokens of each per step, and compares every position.
  void check(uint32_t chunk, double limit) {
    std::vector<uint32_t> done(golden_.prompts.size(), 0);
    while (true) {
      StepBatch batch;
      std::vector<std::pair<size_t, uint32_t>> expected;  // prompt and position of each logit row
      for (size_t p = 0; p < golden_.prompts.size(); ++p) {
        const std::vector<uint32_t>& prompt = golden_.prompts[p];
        const auto count =
            std::min<uint32_t>(chunk, static_cast<uint32_t>(prompt.size()) - done[p]);
        if (count == 0) continue;
        for (uint32_t i = 0; i < count; ++i) {
          batch.logit_rows.push_back(static_cast<uint32_t>(batch.ids.size()) + i);
          batch.sampling.push_back({});
          expected.emplace_back(p, done[p] + i);
        }
        batch.add_sequence(done[p], std::span(prompt).subspan(done[p], count), tables_[p]);
        done[p] += count;
      }
      if (expected.empty()) break;
      ASSERT_ASSIGN(const StepTicket ticket, runner_->submit(batch));
      ASSERT_OK(runner_->wait(ticket));
      ASSERT_ASSIGN(const std::vector<float> logits,
                    runner_->read_logits(static_cast<uint32_t>(expected.size())));
      for (size_t row = 0; row < expected.size(); ++row) {
        const std::span<const float> golden =
            golden_.logits(expected[row].first, expected[row].second);
        const std::vector<double> wanted(golden.begin(), golden.end());
        const std::span<const float> got =
            std::span(logits).subspan(row * golden_.vocab, golden_.vocab);
        ASSERT_LT(nmse(got, wanted), limit)
            << GetParam() << ", chunks of " << chunk << ", prompt " << expected[row].first
            << ", position " << expected[row].second;
      }
    }
  }

  GoldenModel golden_;
  std::unique_ptr<ModelFile> file_, original_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<std::vector<uint32_t>> tables_;
};

TEST_P(GoldenTest, EveryPositionInChunksOfAnySize) {
  load({.rows = kStepRows, .sequences = 8, .logit_rows = kStepRows});
  // A model in F16 uses matrix units if there are any, which also round x to f16; 1.6e-6 was
  // measured on an H200. Experts in MXFP4 do the same, or round x to 16 bits.
  const bool halves =
      (GetParam() == "phi3_long" || GetParam().starts_with("gpt_oss")) && !is_cpu(device().caps());
  for (const uint32_t chunk : {1000u, 1u, 7u, 16u}) check(chunk, halves ? 1e-5 : 1e-6);
}

TEST_P(GoldenTest, WeightsInF16) {
  load({.rows = kStepRows, .sequences = 8, .logit_rows = kStepRows}, /*in_half=*/true);
  EXPECT_EQ(static_cast<const HalfModel&>(*file_).converted() > 0, GetParam() != "phi3_long")
      << "it is in F16 already";
  for (const uint32_t chunk : {1000u, 1u}) check(chunk, 1e-4);
}

// Keys and values are rounded to eight bits; the limit is the error of that. Models with grouped
// queries, heads of 48, and a window in some layers.
using GoldenKvTest = GoldenTest;

TEST_P(GoldenKvTest, KvInQ8_0) {
  load({.rows = kStepRows, .sequences = 8, .logit_rows = kStepRows, .kv = KvFormat::kQ8_0});
  for (const uint32_t chunk : {1000u, 7u}) check(chunk, 5e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(golden_model_names()),
                         [](const auto& test) { return test.param; });

INSTANTIATE_TEST_SUITE_P(Models, GoldenKvTest, ::testing::Values("llama", "llama_linear", "gemma3"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace hearth::testing
