// Kernels of a chain read what the one before them has just written, where other values lay a few
// links before: whoever is shown those out of a cache ends with another result than with barriers.
#include <bit>

#include "engine/ops/norm.h"
#include "tests/support/matmul.h"

namespace hearth::testing {
namespace {

class ChainedProductsTest : public MatmulFixture {
 protected:
  // Lavapipe, which has no such caches, takes as long for a few as a GPU for many.
  bool quick() { return is_cpu(device().caps()); }
  uint32_t width() { return quick() ? 256 : 2048; }
  uint32_t layers() { return quick() ? 4 : 60; }
  uint32_t runs() { return quick() ? 2 : 20; }

  // There kernels for GPUs run, of which those on matrix units take seconds to compile.
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

  // x += down * up * norm(x), layer by layer, run by run: all of x changes in each.
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
    uint32_t links = 0, barriers = 0;
    ASSERT_ASSIGN(const std::vector<uint32_t> chained, run_layers(model, true, links));
    ASSERT_ASSIGN(const std::vector<uint32_t> waited, run_layers(model, false, barriers));
    EXPECT_LT(links, 3u);
    EXPECT_GE(barriers, 3 * layers() - 1);
    size_t others = 0, unusual = 0;
    for (size_t i = 0; i < waited.size(); ++i) {
      others += chained[i] != waited[i] ? 1 : 0;
      unusual += std::isfinite(std::bit_cast<float>(waited[i])) ? 0 : 1;
    }
    EXPECT_EQ(others, 0u) << "of " << waited.size();
    EXPECT_EQ(unusual, 0u);
  }

  void SetUp() override {
    MatmulFixture::SetUp();
    if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  }
};

TEST_F(ChainedProductsTest, OneRow) {
  check_chain(WeightFormat::kF16, 1);
  check_chain(WeightFormat::kQ8_0, 1);
}

TEST_F(ChainedProductsTest, AFewRows) { check_chain(WeightFormat::kF16, 8); }

TEST_F(ChainedProductsTest, ManyRows) {
  if (quick()) GTEST_SKIP() << "without matrix units, tiles are in no chain";
  check_chain(WeightFormat::kF16, 64);
}

}  // namespace
}  // namespace hearth::testing
