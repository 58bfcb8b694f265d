// Kernels of a chain read what the previous one has just written, in memory that held other values
// a few links earlier. A kernel that reads stale values from a cache gets a different result than
// with barriers.
#include <bit>

#include "engine/ops/norm.h"
#include "tests/support/matmul.h"

namespace hearth::testing {
namespace {

class ChainedProductsTest : public MatmulFixture {
 protected:
  // Lavapipe has no such caches, and takes as long for a few layers as a GPU for many.
  bool quick() { return is_cpu(device().caps()); }
  uint32_t width() { return quick() ? 256 : 2048; }
  uint32_t layers() { return quick() ? 4 : 60; }
  uint32_t runs() { return quick() ? 2 : 20; }

  // For plans of GPU kernels; those on matrix units take lavapipe seconds to compile.
  DeviceCaps caps() {
    if (!quick()) return device().caps();
    DeviceCaps caps = gpu_caps(true);
    caps.features.coopmat = false;
    return caps;
  }

  struct Model {
    MatmulShape shape;
    Buffer up, down, norm;
  };

  // x += down * up * norm(x), layer by layer and run by run: every layer changes all of x.
  Result<std::vector<uint32_t>> run_layers(const Model& model, bool chained, uint32_t& barriers) {
    const MatmulShape& shape = model.shape;
    const size_t bytes = size_t{shape.rows} * width() * 4;
    const Buffer x = filled(random_floats(bytes / 4, 3)), y = poisoned(bytes), h = poisoned(bytes);
    const MatmulPlan plan = choose_matmul(caps(), shape);
    const RmsNormShape rows{.rows = shape.rows, .width = width()};
    const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
    HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.chained = chained}));
    for (uint32_t layer = 0; layer < layers(); ++layer) {
      HEARTH_TRY(
          record_rms_norm(recorder, pipelines(), choose_rms_norm(caps(), rows),
                          {.x = x.all(), .weight = model.norm.all(), .y = y.all(), .shape = rows}));
      Matmul op{.weight = model.up.all(),
                .x = y.all(),
                .y = h.all(),
                .scratch = scratch.all(),
                .shape = shape};
      HEARTH_TRY(record_matmul(recorder, pipelines(), plan, op));
      op.weight = model.down.all();
      op.x = h.all();
      op.y = x.all();
      op.residual = x.all();
      HEARTH_TRY(record_matmul(recorder, pipelines(), plan, op));
    }
    HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
    barriers = commands.barriers();
    for (uint32_t i = 0; i < runs(); ++i) HEARTH_TRY(device().compute().run(commands));
    return read<uint32_t>(x);
  }

  void check_chain(WeightFormat format, uint32_t rows) {
    const MatmulShape shape{.format = format, .rows = rows, .inputs = width(), .outputs = width()};
    const Model model{.shape = shape,
                      .up = filled(random_weights(format, width(), width(), 0.1f).device),
                      .down = filled(random_weights(format, width(), width(), 0.02f).device),
                      .norm = filled(random_floats(width(), 7))};
    uint32_t chained_barriers = 0, barriers = 0;
    ASSERT_ASSIGN(const std::vector<uint32_t> chained, run_layers(model, true, chained_barriers));
    ASSERT_ASSIGN(const std::vector<uint32_t> with_barriers, run_layers(model, false, barriers));
    EXPECT_LT(chained_barriers, 3u);
    EXPECT_GE(barriers, 3 * layers() - 1);
    size_t different = 0, not_finite = 0;
    for (size_t i = 0; i < with_barriers.size(); ++i) {
      different += chained[i] != with_barriers[i] ? 1 : 0;
      not_finite += std::isfinite(std::bit_cast<float>(with_barriers[i])) ? 0 : 1;
    }
    EXPECT_EQ(different, 0u) << "of " << with_barriers.size();
    EXPECT_EQ(not_finite, 0u);
  }

  void SetUp() override {
    MatmulFixture::SetUp();
    if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  }
};

TEST_F(ChainedProductsTest, OneRowGivesTheSameBitsAsWithBarriers) {
  check_chain(WeightFormat::kF16, 1);
  check_chain(WeightFormat::kQ8_0, 1);
}

TEST_F(ChainedProductsTest, AFewRowsGiveTheSameBitsAsWithBarriers) {
  check_chain(WeightFormat::kF16, 8);
}

TEST_F(ChainedProductsTest, ManyRowsGiveTheSameBitsAsWithBarriers) {
  if (quick()) GTEST_SKIP() << "tiles without matrix units cannot be chained";
  check_chain(WeightFormat::kF16, 64);
}

}  // namespace
}  // namespace hearth::testing
