// Fused plans compute what unfused plans compute, for every architecture and for steps of one row,
// a few rows, many rows and several prompts. Steps are planned for a GPU without matrix units and
// for one with, so that norms, gates and rope are fused as they are there, and run on the device of
// the test. A third run, with the device's own kernels, shows that those of the GPU compute
// something sensible here.
//
// All models have the same sizes, so that their kernels are compiled once.
#include "tests/support/fusion.h"

#include <algorithm>

#include "engine/model/architecture.h"

namespace hearth::testing {
namespace {

class FusionTest : public FusionFixture, public ::testing::WithParamInterface<std::string> {
 protected:
  // A GPU without matrix units, otherwise like this device.
  DeviceCaps plain_gpu() {
    DeviceCaps caps = device().caps();
    caps.type = DeviceType::kDiscrete;
    caps.features.coopmat = caps.features.lane_fragments = false;
    caps.limits.multiprocessors = 8;
    return caps;
  }
};

TEST_P(FusionTest, OnAGpuWithoutMatrixUnits) {
  const MadeModelInfo info = model_of(GetParam());
  load(info);
  // Several prompts, single tokens of three sequences and of one, then many rows.
  FusionCounts fused =
      check(plain_gpu(), {{5, 0, 0}, {1, 11, 13}, {1, 1, 1}, {0, 1, 0}, {0, 0, 70}});
  EXPECT_GT(fused["norm in a product"], 0u);
  EXPECT_EQ(fused["gate in a product"] > 0, info.experts == 0);
  EXPECT_GT(fused["rope in attention"], 0u);
}

TEST_P(FusionTest, OnAGpuWithMatrixUnits) {
  MadeModelInfo info = wide_model_of(GetParam(), 1024);
  // Kernels that round differently from the device's own would choose other experts at near ties.
  info.used_experts = info.experts;
  load(info);
  FusionCounts fused = check_with_matrix_units(1e-5);
  EXPECT_GT(fused["f16 rows"], 0u);
  EXPECT_GT(fused["norm in a product"], 0u);
  EXPECT_GT(fused["rope in attention"], 0u);
  EXPECT_GT(fused["sums in rope"], 0u);
  EXPECT_EQ(fused["gate in a product"] > 0, info.experts == 0);
}

std::vector<std::string> fused_architectures() {
  std::vector<std::string> names;
  for (const Architecture* architecture : all_architectures())
    names.emplace_back(architecture->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Architectures, FusionTest, ::testing::ValuesIn(fused_architectures()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hearth::testing
