#include "engine/ops/norm.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference.h"

namespace hearth::testing {
namespace {

constexpr double kLimit = 1e-10;  // NMSE

class RmsNormTest : public GpuTest {
 protected:
  void check(const RmsNormShape& shape, const KernelPlan& plan, float epsilon = 1e-5f) {
    const size_t count = size_t{shape.rows} * shape.width;
    const std::vector<float> x = random_floats(count, shape.rows * 1000 + shape.width);
    const std::vector<float> weight = random_floats(shape.width, 7);
    const Buffer x_buffer = filled(x), weight_buffer = filled(weight);
    const Buffer y_buffer = poisoned(count * 4);
    run([&](CommandRecorder& recorder) {
      return record_rms_norm(recorder, pipelines(), plan,
                             {.x = x_buffer.all(),
                              .weight = weight_buffer.all(),
                              .y = y_buffer.all(),
                              .shape = shape,
                              .epsilon = epsilon});
    });
    EXPECT_LT(nmse(read<float>(y_buffer),
                   reference_rms_norm(x, weight, shape.rows, shape.width, double{epsilon})),
              kLimit)
        << shape.rows << " x " << shape.width;
  }
};

TEST_F(RmsNormTest, Shapes) {
  for (const RmsNormShape shape : {RmsNormShape{1, 1},
                                   {1, 3},
                                   {2, 4},
                                   {3, 5},
                                   {1, 31},
                                   {7, 32},
                                   {2, 33},
                                   {5, 288},
                                   {1, 1023},
                                   {3, 2048},
                                   {4, 4096},
                                   {1, 5120},
                                   {70, 100}})
    check(shape, choose_rms_norm(device().caps(), shape));
}

TEST_F(RmsNormTest, GroupsOfSeveralSubgroups) {
  // The CPU tier is one subgroup a group; the GPU's way must be right here too.
  const uint32_t subgroup = device().caps().subgroup_size;
  for (const uint32_t subgroups : {1u, 2u, 3u, 8u}) {
    const RmsNormShape shape{.rows = 3, .width = 300};
    check(shape, {.pipeline = {.kernel = "rms_norm", .constants = {subgroup * subgroups}},
                  .groups = {.x = shape.rows}});
  }
}

TEST_F(RmsNormTest, EpsilonCountsForSmallRows) {
  check({2, 64}, choose_rms_norm(device().caps(), {2, 64}), 10.0f);
}

TEST_F(RmsNormTest, InPlace) {
  const RmsNormShape shape{.rows = 4, .width = 96};
  const std::vector<float> x = random_floats(4 * 96, 5), weight = random_floats(96, 6);
  const Buffer x_buffer = filled(x), weight_buffer = filled(weight);
  run([&](CommandRecorder& recorder) {
    return record_rms_norm(
        recorder, pipelines(), choose_rms_norm(device().caps(), shape),
        {.x = x_buffer.all(), .weight = weight_buffer.all(), .y = x_buffer.all(), .shape = shape});
  });
  EXPECT_LT(nmse(read<float>(x_buffer), reference_rms_norm(x, weight, 4, 96, 1e-5)), kLimit);
}

}  // namespace
}  // namespace hearth::testing
