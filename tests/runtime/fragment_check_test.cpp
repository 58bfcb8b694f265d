#include "runtime/fragment_check.h"

#include <span>
#include <utility>

#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using FragmentCheckTest = GpuTest;

// Only devices with such fragments get lane_fragments, and a second check changes nothing.
TEST_F(FragmentCheckTest, OnlyDevicesWithFragmentsCanPass) {
  const DeviceFeatures before = device().caps().features;
  ASSERT_OK(check_fragments(device(), pipelines()));
  EXPECT_EQ(device().caps().features, before);
  if (!before.coopmat || device().caps().subgroup_size != 32) {
    EXPECT_FALSE(before.lane_fragments);
  }
}

// Swapping rows, outputs or inputs in one operand changes the result, so the check notices a lane
// that holds the elements of another.
TEST(FragmentProduct, SwappedElementsChangeTheResult) {
  using Product = FragmentProduct;
  const Product right = Product::generate();
  const auto expect_different = [&](const Product& swapped, const char* what, uint32_t a,
                                    uint32_t b) {
    EXPECT_NE(swapped.result(), right.result()) << what << ' ' << a << ' ' << b;
  };
  // Swaps two columns of an operand.
  const auto swap_inputs = [](std::span<uint32_t> operand, uint32_t a, uint32_t b) {
    for (size_t row = 0; row < operand.size(); row += Product::kInputs)
      std::swap(operand[row + a], operand[row + b]);
  };
  const auto swap_rows = [](std::span<uint32_t> operand, uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < Product::kInputs; ++k)
      std::swap(operand[a * Product::kInputs + k], operand[b * Product::kInputs + k]);
  };
  for (uint32_t a = 0; a < 16; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      Product product = right;
      swap_inputs(product.x, a, b);
      expect_different(product, "inputs of x", a, b);
      product = right;
      swap_inputs(product.weight, a, b);
      expect_different(product, "inputs of weights", a, b);
      product = right;
      swap_rows(product.x, a, b);
      expect_different(product, "rows", a, b);
      if (a >= Product::kOutputs) continue;
      product = right;
      swap_rows(product.weight, a, b);
      expect_different(product, "outputs", a, b);
    }
  }
}

}  // namespace
}  // namespace hearth::testing
