// The plans of devices that we do not have, compared with files that people review:
// tests/engine/program/plans, one per device profile. A change of kernel choice or of a fusion
// shows there, for all devices at once. To write them anew:
//
//   HEARTH_UPDATE_PLANS=1 build/release/tests/engine_program_tests --file plan_golden_test
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/program/describe.h"
#include "tests/engine/program/planned_model.h"

namespace hearth::testing {
namespace {

// llama-8b as Q4_K_M has it: some tensors of some layers in Q6_K.
MadeModelInfo llama_8b() {
  MadeModelInfo info = llama_8b_shape();
  info.format = [](const std::string& tensor) {
    const bool larger = tensor == "token_embd.weight" || tensor == "blk.0.attn_v.weight" ||
                        tensor == "blk.0.ffn_down.weight";
    return larger ? WeightFormat::kQ6K : WeightFormat::kQ4K;
  };
  return info;
}

MadeModelInfo gemma2_2b() {
  return {.architecture = "gemma2",
          .layers = 2,
          .width = 2304,
          .heads = 8,
          .kv_heads = 4,
          .head_size = 256,
          .mlp_width = 9216,
          .vocabulary = 256000,
          .context = 8192};
}

MadeModelInfo qwen3_30b_a3b() {
  return {.architecture = "qwen3moe",
          .layers = 3,
          .width = 2048,
          .heads = 32,
          .kv_heads = 4,
          .head_size = 128,
          .mlp_width = 768,
          .vocabulary = 151936,
          .context = 8192,
          .experts = 128,
          .used_experts = 8,
          .format = [](const std::string& tensor) {
            const bool router = tensor.find("ffn_gate_inp") != std::string::npos;
            return router ? WeightFormat::kF32 : WeightFormat::kQ4K;
          }};
}

// With biases everywhere, and rows that are no multiple of 128.
MadeModelInfo gpt_oss_20b() {
  return {.architecture = "gpt-oss",
          .layers = 2,
          .width = 2880,
          .heads = 64,
          .kv_heads = 8,
          .head_size = 64,
          .mlp_width = 2880,
          .vocabulary = 201088,
          .context = 8192,
          .experts = 32,
          .used_experts = 4,
          .optional_weights = true,
          .format = [](const std::string& tensor) {
            const bool expert = tensor.find("_exps") != std::string::npos;
            return expert ? WeightFormat::kMxfp4 : WeightFormat::kF16;
          }};
}

Result<std::string> plans_of(const DeviceCaps& caps) {
  struct Golden {
    const char* name;
    MadeModelInfo model;
    std::vector<StepBucket> steps;
  };
  std::string text;
  for (const Golden& golden :
       {Golden{"llama-8b, Q4_K with some Q6_K",
               llama_8b(),
               {step_of(1, 1), step_of(8, 1), step_of(64, 1), step_of(1, 16), step_of(1, 512)}},
        Golden{"gemma2-2b, F16", gemma2_2b(), {step_of(1, 1), step_of(8, 1)}},
        Golden{
            "qwen3-30b-a3b, Q4_K", qwen3_30b_a3b(), {step_of(1, 1), step_of(8, 1), step_of(64, 1)}},
        Golden{"gpt-oss-20b, MXFP4 and F16",
               gpt_oss_20b(),
               {step_of(1, 1), step_of(8, 1), step_of(64, 1)}}}) {
    HEARTH_ASSIGN(const auto model, PlannedModel::create(golden.model));
    for (const StepBucket& bucket : golden.steps) {
      const StepPlan plan = model->plan(caps, bucket);
      HEARTH_ASSIGN(const auto layers, describe(plan));
      text += fmt::format("== {}: {}\n{}\n", golden.name, step_text(plan), to_text(layers));
    }
  }
  return text;
}

std::filesystem::path plan_file(std::string_view device) {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "tests" / "engine" / "program" / "plans" /
         fmt::format("{}.txt", device);
}

// The first line in which two texts differ, of both.
std::string first_difference(const std::string& wanted, const std::string& got) {
  const size_t at = static_cast<size_t>(std::ranges::mismatch(wanted, got).in1 - wanted.begin());
  const size_t begin = at == 0 ? 0 : wanted.rfind('\n', at - 1) + 1;
  const auto line = [&](const std::string& text) {
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  return fmt::format("  golden: {}\n  now:    {}", line(wanted), line(got));
}

TEST(PlanGolden, PlansAreThoseOfTheGoldenFiles) {
  for (const DeviceProfile& device : device_profiles()) {
    const auto text = plans_of(device.caps);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const std::filesystem::path path = plan_file(device.name);
    if (std::getenv("HEARTH_UPDATE_PLANS") != nullptr) {
      std::ofstream(path) << *text;
      continue;
    }
    std::ifstream file(path);
    const std::string golden{std::istreambuf_iterator<char>(file), {}};
    EXPECT_TRUE(golden == *text)
        << device.name << " runs other kernels than " << path << " says. The first difference:\n"
        << first_difference(golden, *text)
        << "\nIf that is intended, run this test with HEARTH_UPDATE_PLANS=1 and review the files.";
  }
}

}  // namespace
}  // namespace hearth::testing
