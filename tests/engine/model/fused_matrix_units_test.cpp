// Plans for a GPU with matrix units, fused and not, with emulated kernels: a model with quantized
// weights and a mixture of experts in MXFP4, as gpt-oss has it. slow/fusion_test.cpp runs all
// architectures.
#include "tests/support/fusion.h"

namespace hearth::testing {
namespace {

using FusedMatrixUnits = FusionFixture;

// Integer dot products round x, so steps of one row differ from the device's own.
constexpr double kIntegerLimit = 1e-3;

TEST_F(FusedMatrixUnits, QuantizedWeights) {
  MadeModelInfo info = wide_model_of("llama", 512);
  info.format = [](const std::string&) { return WeightFormat::kQ4K; };
  load(info);
  FusionCounts fused = check_with_matrix_units(kIntegerLimit);
  for (const char* fusion :
       {"f16 rows", "norm in a product", "gate in a product", "shared norm", "rope in attention"})
    EXPECT_GT(fused[fusion], 0u) << fusion;
}

TEST_F(FusedMatrixUnits, MixtureOfExperts) {
  MadeModelInfo info = wide_model_of("gpt-oss", 512);
  info.optional_weights = true;
  info.format = [](const std::string& tensor) {
    const bool expert = tensor.find("_exps") != std::string::npos;
    return expert ? WeightFormat::kMxfp4 : WeightFormat::kF16;
  };
  load(info);
  FusionCounts fused = check_with_matrix_units(kIntegerLimit);
  for (const char* fusion :
       {"f16 rows", "norm in a product", "norm in experts", "rope in attention"})
    EXPECT_GT(fused[fusion], 0u) << fusion;
}

}  // namespace
}  // namespace hearth::testing
