#include "params/rms_norm.h"

#include "engine/ops/norm.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference.h"
#include "tests/support/row_form.h"

namespace hearth::testing {
namespace {

constexpr double kNormLimit = 1e-10;  // NMSE

const RmsNormShape kShapes[] = {{1, 1},    {1, 3},    {2, 4},    {3, 5},     {1, 31},
                                {7, 32},   {2, 33},   {5, 288},  {1, 1023},  {3, 2048},
                                {4, 4096}, {1, 5120}, {2, 8192}, {1, 20000}, {70, 100}};

class RmsNormTest : public GpuTest {
 protected:
  DeviceCaps gpu_caps() {
    DeviceCaps gpu = device().caps();
    gpu.type = DeviceType::kDiscrete;
    return gpu;
  }

  // x += residual, then the norm; `over_residual`: y overwrites the residual.
  void check_add(RmsNormShape shape, const DeviceCaps& caps, bool over_residual) {
    shape.residuals = 1;
    const size_t count = size_t{shape.rows} * shape.width;
    const std::vector<float> x = random_floats(count, shape.width);
    const std::vector<float> residual = random_floats(count, shape.rows + 17);
    const std::vector<float> weight = random_floats(shape.width, 7);
    const Buffer x_buffer = filled(x), weight_buffer = filled(weight);
    const Buffer residual_buffer = filled(residual), y_other = poisoned(count * 4);
    const Buffer& y_buffer = over_residual ? residual_buffer : y_other;
    run([&](CommandRecorder& recorder) {
      return record_rms_norm(recorder, pipelines(), choose_rms_norm(caps, shape),
                             {.x = x_buffer.all(),
                              .weight = weight_buffer.all(),
                              .y = y_buffer.all(),
                              .shape = shape,
                              .residual = residual_buffer.all()});
    });
    std::vector<float> sum(count);
    for (size_t i = 0; i < count; ++i) sum[i] = x[i] + residual[i];
    EXPECT_EQ(read<float>(x_buffer), sum) << shape.rows << " x " << shape.width;
    EXPECT_LT(
        nmse(read<float>(y_buffer), reference_rms_norm(sum, weight, shape.rows, shape.width, 1e-5)),
        kNormLimit)
        << shape.rows << " x " << shape.width;
    if (!over_residual) {
      EXPECT_EQ(read<float>(residual_buffer), residual);
    }
  }

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
              kNormLimit)
        << shape.rows << " x " << shape.width;
  }
};

TEST_F(RmsNormTest, Shapes) {
  for (const RmsNormShape& shape : kShapes) check(shape, choose_rms_norm(device().caps(), shape));
}

TEST_F(RmsNormTest, ShapesAsChosenForAGpu) {
  for (const RmsNormShape& shape : kShapes) check(shape, choose_rms_norm(gpu_caps(), shape));
}

TEST_F(RmsNormTest, AddsTheResidualFirst) {
  for (const RmsNormShape& shape : kShapes) {
    check_add(shape, device().caps(), false);
    check_add(shape, device().caps(), true);
    check_add(shape, gpu_caps(), false);
    check_add(shape, gpu_caps(), true);
  }
}

// The partial sums of a split product are in tiles that are larger than the result.
TEST_F(RmsNormTest, AddsPartialSumsFirst) {
  constexpr uint32_t kRows = 3, kPartials = 5, kTileRows = 8;
  for (const DeviceCaps& caps : {device().caps(), gpu_caps()}) {
    for (const uint32_t width : {20u, 33u, 4096u, 20000u}) {
      const uint32_t stride = (width + 63) / 64 * 64;
      const RmsNormShape shape{.rows = kRows, .width = width, .residuals = kPartials};
      const std::vector<float> x = random_floats(size_t{kRows} * width, width);
      const std::vector<float> partials = random_floats(size_t{kPartials} * kTileRows * stride, 9);
      const std::vector<float> weight = random_floats(width, 7);
      const Buffer x_buffer = filled(x), weight_buffer = filled(weight),
                   part_buffer = filled(partials);
      const Buffer y_buffer = poisoned(x.size() * 4);
      run([&](CommandRecorder& recorder) {
        return record_rms_norm(recorder, pipelines(), choose_rms_norm(caps, shape),
                               {.x = x_buffer.all(),
                                .weight = weight_buffer.all(),
                                .y = y_buffer.all(),
                                .shape = shape,
                                .residual = part_buffer.all(),
                                .residual_stride = stride,
                                .partial_stride = kTileRows * stride});
      });
      std::vector<float> sum = x;
      for (uint32_t r = 0; r < kRows; ++r)
        for (uint32_t i = 0; i < width; ++i)
          for (uint32_t s = 0; s < kPartials; ++s)
            sum[r * width + i] += partials[(s * kTileRows + r) * stride + i];
      EXPECT_LT(nmse(read<float>(x_buffer), std::vector<double>(sum.begin(), sum.end())),
                kNormLimit);
      EXPECT_LT(nmse(read<float>(y_buffer), reference_rms_norm(sum, weight, kRows, width, 1e-5)),
                kNormLimit)
          << width;
    }
  }
}

TEST_F(RmsNormTest, WritesHalvesForAMatmul) {
  for (const auto& [rows, width] :
       {std::pair{1u, 32u}, {3u, 96u}, {2u, 1056u}, {3u, 4096u}, {2u, 20000u}}) {
    const RmsNormShape shape{
        .rows = rows, .width = width, .residuals = 1, .form = RowForm::kHalves};
    const size_t count = size_t{rows} * width;
    const std::vector<float> x = random_floats(count, width), residual = random_floats(count, 3);
    const std::vector<float> weight = random_floats(width, 7);
    const Buffer x_buffer = filled(x), residual_buffer = filled(residual);
    const Buffer weight_buffer = filled(weight);
    const Buffer y_buffer = poisoned(row_form_bytes(shape.form, rows, width));
    run([&](CommandRecorder& recorder) {
      return record_rms_norm(recorder, pipelines(), choose_rms_norm(gpu_caps(), shape),
                             {.x = x_buffer.all(),
                              .weight = weight_buffer.all(),
                              .y = y_buffer.all(),
                              .shape = shape,
                              .residual = residual_buffer.all()});
    });
    std::vector<float> sum(count);
    for (size_t i = 0; i < count; ++i) sum[i] = x[i] + residual[i];
    const std::vector<double> reference = reference_rms_norm(sum, weight, rows, width, 1e-5);
    EXPECT_LT(nmse(read_halves(read<uint32_t>(y_buffer)), reference), kHalvesLimit)
        << rows << " x " << width;
  }
}

TEST_F(RmsNormTest, OverwritingTheSumOrOmittingTheResidualIsRefused) {
  const Buffer any = poisoned(64);
  const RmsNormShape shape{.rows = 1, .width = 4, .residuals = 1};
  for (const BufferSlice& residual : {any.slice(16, 16), BufferSlice{}}) {
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status =
        record_rms_norm(recorder, pipelines(), choose_rms_norm(device().caps(), shape),
                        {.x = any.slice(0, 16),
                         .weight = any.slice(32, 16),
                         .y = residual.buffer == nullptr ? any.slice(48, 16) : any.slice(0, 16),
                         .shape = shape,
                         .residual = residual});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  }
}

TEST_F(RmsNormTest, WorkgroupsOfSeveralSubgroups) {
  // The CPU tier has one subgroup per workgroup; the GPU's plan must be correct here, too.
  const uint32_t subgroup = device().caps().subgroup_size;
  for (const uint32_t subgroups : {1u, 2u, 3u, 8u}) {
    const RmsNormShape shape{.rows = 3, .width = 300};
    check(shape, {.pipeline = {.kernel = "rms_norm",
                               .constants = params::RmsNormConstants{.kWorkgroupSize =
                                                                         subgroup * subgroups}},
                  .groups = {.x = shape.rows}});
  }
}

// The scale of each row, without the weight, for each way a row is read.
TEST_F(RmsNormTest, WritesScales) {
  for (const DeviceCaps& caps : {device().caps(), gpu_caps()}) {
    for (const uint32_t width : {33u, 256u, 20000u}) {
      const RmsNormShape shape{.rows = 3, .width = width};
      const std::vector<float> x = random_floats(size_t{shape.rows} * width, width);
      const Buffer x_buffer = filled(x), y_buffer = poisoned(x.size() * 4);
      const Buffer weight_buffer = filled(random_floats(width, 7));
      const Buffer scales = poisoned(4 * 4);
      run([&](CommandRecorder& recorder) {
        return record_rms_norm(recorder, pipelines(), choose_rms_norm(caps, shape),
                               {.x = x_buffer.all(),
                                .weight = weight_buffer.all(),
                                .y = y_buffer.all(),
                                .shape = shape,
                                .epsilon = 0.5f,
                                .scales = scales.slice(0, shape.rows * 4)});
      });
      const std::vector<float> kept = read<float>(scales);
      const std::vector<float> ones(width, 1.0f);
      const std::vector<double> normed = reference_rms_norm(x, ones, shape.rows, width, 0.5);
      for (uint32_t row = 0; row < shape.rows; ++row)
        EXPECT_NEAR(kept[row] * x[row * width], normed[row * width], 1e-5) << width;
      EXPECT_TRUE(std::isnan(kept[shape.rows])) << "written past the end";
    }
  }
}

TEST_F(RmsNormTest, EpsilonMattersForSmallRows) {
  check({2, 64}, choose_rms_norm(device().caps(), {2, 64}), 10.0f);
}

TEST_F(RmsNormTest, WorksInPlace) {
  const RmsNormShape shape{.rows = 4, .width = 96};
  const std::vector<float> x = random_floats(4 * 96, 5), weight = random_floats(96, 6);
  const Buffer x_buffer = filled(x), weight_buffer = filled(weight);
  run([&](CommandRecorder& recorder) {
    return record_rms_norm(
        recorder, pipelines(), choose_rms_norm(device().caps(), shape),
        {.x = x_buffer.all(), .weight = weight_buffer.all(), .y = x_buffer.all(), .shape = shape});
  });
  EXPECT_LT(nmse(read<float>(x_buffer), reference_rms_norm(x, weight, 4, 96, 1e-5)), kNormLimit);
}

}  // namespace
}  // namespace hearth::testing
