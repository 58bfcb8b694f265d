#include "engine/ops/matvec.h"

#include <gmock/gmock.h>

#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference.h"

namespace hearth::testing {
namespace {

constexpr double kLimit = 1e-10;  // NMSE: products of halves are exact in f32, sums are f32

class MatvecTest : public GpuTest {
 protected:
  void check(const MatvecShape& shape, const KernelPlan& plan) {
    const std::vector<uint16_t> halves =
        to_half(random_floats(size_t{shape.outputs} * shape.inputs, shape.outputs, 0.05f));
    std::vector<float> weight;
    for (const uint16_t bits : halves) weight.push_back(from_half(bits));
    const std::vector<float> x =
        random_floats(size_t{shape.rows} * shape.inputs, shape.inputs + shape.rows);
    const Buffer weight_buffer = filled(halves), x_buffer = filled(x);
    // One row more than is asked for: it must stay poisoned.
    const size_t count = size_t{shape.rows} * shape.outputs;
    const Buffer y_buffer = poisoned((count + shape.outputs) * 4);
    run([&](CommandRecorder& recorder) {
      return record_matvec(recorder, pipelines(), plan,
                           {.weight = weight_buffer.all(),
                            .x = x_buffer.all(),
                            .y = y_buffer.slice(0, count * 4),
                            .shape = shape});
    });
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = count; i < y.size(); ++i)
      ASSERT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(count);
    EXPECT_LT(nmse(y, reference_matmul(weight, x, shape.rows, shape.inputs, shape.outputs)), kLimit)
        << plan.pipeline.kernel << ": " << shape.rows << " x " << shape.outputs << " x "
        << shape.inputs;
  }
};

const MatvecShape kShapes[] = {
    {.rows = 1, .inputs = 8, .outputs = 1},      {.rows = 1, .inputs = 16, .outputs = 3},
    {.rows = 2, .inputs = 72, .outputs = 5},     {.rows = 3, .inputs = 256, .outputs = 64},
    {.rows = 4, .inputs = 288, .outputs = 100},  {.rows = 5, .inputs = 1000, .outputs = 33},
    {.rows = 6, .inputs = 1024, .outputs = 129}, {.rows = 7, .inputs = 4096, .outputs = 17},
    {.rows = 8, .inputs = 2056, .outputs = 65},  {.rows = 1, .inputs = 4096, .outputs = 256},
};

TEST_F(MatvecTest, ShapesAsChosenHere) {
  for (const MatvecShape& shape : kShapes) check(shape, choose_matvec(device().caps(), shape));
}

TEST_F(MatvecTest, ShapesAsChosenForAGpu) {
  DeviceCaps gpu = device().caps();
  gpu.type = DeviceType::kDiscrete;
  for (const MatvecShape& shape : kShapes) check(shape, choose_matvec(gpu, shape));
}

TEST_F(MatvecTest, EveryTileOfTheSubgroupKernel) {
  const uint32_t subgroup = device().caps().subgroup_size;
  const MatvecShape shape{.rows = 2, .inputs = 520, .outputs = 37};
  for (const uint32_t outputs : {1u, 2u, 4u}) {
    for (const uint32_t ahead : {1u, 2u, 4u}) {
      const uint32_t subgroups = 3;
      check(shape,
            {.pipeline = {.kernel = "matvec_subgroup.f16",
                          .constants = {subgroup * subgroups, shape.rows, outputs, ahead},
                          .subgroup_size = subgroup},
             .groups = {.x = (shape.outputs + outputs * subgroups - 1) / (outputs * subgroups)}});
    }
  }
}

TEST_F(MatvecTest, ShapesTheKernelsCannotTakeAreRefused) {
  const Buffer any = poisoned(64);
  for (const MatvecShape shape : {MatvecShape{.rows = 0, .inputs = 8, .outputs = 1},
                                  {.rows = 9, .inputs = 8, .outputs = 1},
                                  {.rows = 1, .inputs = 12, .outputs = 1}}) {
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status =
        record_matvec(recorder, pipelines(), choose_matvec(device().caps(), shape),
                      {.weight = any.all(), .x = any.all(), .y = any.all(), .shape = shape});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
    ASSERT_OK(recorder.finish());
  }
}

}  // namespace
}  // namespace hearth::testing
