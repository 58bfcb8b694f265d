#include "engine/ops/mlp.h"
#include "tests/support/compare.h"
#include "tests/support/gpu.h"
#include "tests/support/reference_mlp.h"
#include "tests/support/row_form.h"

namespace hearth::testing {
namespace {

constexpr double kActivationLimit = 1e-12;  // NMSE

class MlpActivationTest : public GpuTest {
 protected:
  static double expected(const MlpShape& shape, double gate, double up) {
    return (shape.activation == MlpActivation::kSilu ? reference_silu(gate)
                                                     : reference_gelu_tanh(gate)) *
           up;
  }

  void check(const MlpShape& shape, const KernelPlan& plan, bool fused) {
    const size_t count = size_t{shape.rows} * shape.width;
    const std::vector<float> gate = random_floats(count, shape.width, 2.0f);
    const std::vector<float> up = random_floats(count, shape.rows + 100);
    const Buffer y_buffer = poisoned((count + 8) * 4);
    Buffer gate_buffer, up_buffer;
    Mlp op{.gate = {}, .up = {}, .y = y_buffer.slice(0, count * 4), .shape = shape};
    if (fused) {
      std::vector<float> both;
      for (size_t r = 0; r < shape.rows; ++r) {
        for (const std::vector<float>* part : {&gate, &up})
          for (size_t i = 0; i < shape.width; ++i) both.push_back((*part)[r * shape.width + i]);
      }
      gate_buffer = filled(both);
      use_fused_gate_up(op, gate_buffer.all());
    } else {
      gate_buffer = filled(gate);
      up_buffer = filled(up);
      op.gate = gate_buffer.all();
      op.up = up_buffer.all();
    }
    run([&](CommandRecorder& recorder) { return record_mlp(recorder, pipelines(), plan, op); });

    std::vector<double> reference;
    for (size_t i = 0; i < count; ++i)
      reference.push_back(expected(shape, double{gate[i]}, double{up[i]}));
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = count; i < y.size(); ++i)
      ASSERT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(count);
    EXPECT_LT(nmse(y, reference), kActivationLimit)
        << shape.rows << " x " << shape.width << " fused " << fused;
  }
};

TEST_F(MlpActivationTest, ShapesAndActivations) {
  DeviceCaps gpu = device().caps();
  gpu.type = DeviceType::kDiscrete;
  for (const DeviceCaps& caps : {device().caps(), gpu}) {
    for (const MlpActivation activation : {MlpActivation::kSilu, MlpActivation::kGeluTanh}) {
      for (const auto& [rows, width] : {std::pair{1u, 1u},
                                        {2u, 3u},
                                        {1u, 4u},
                                        {3u, 33u},
                                        {5u, 768u},
                                        {1u, 11008u},
                                        {70u, 260u},
                                        {65u, 1029u},
                                        {2u, 14336u}}) {
        const MlpShape shape{.rows = rows, .width = width, .activation = activation};
        check(shape, choose_mlp(caps, shape), false);
        check(shape, choose_mlp(caps, shape), true);
      }
    }
  }
}

TEST_F(MlpActivationTest, WritesHalvesForAMatmul) {
  DeviceCaps gpu = device().caps();
  gpu.type = DeviceType::kDiscrete;
  for (const auto& [rows, width] : {std::pair{1u, 32u}, {3u, 96u}, {70u, 352u}, {2u, 14336u}}) {
    const MlpShape shape{.rows = rows, .width = width, .form = RowForm::kHalves};
    const size_t count = size_t{rows} * width;
    const std::vector<float> gate = random_floats(count, width, 2.0f), up = random_floats(count, 9);
    const Buffer gate_buffer = filled(gate), up_buffer = filled(up);
    const Buffer y_buffer = poisoned(row_form_bytes(shape.form, rows, width));
    run([&](CommandRecorder& recorder) {
      return record_mlp(
          recorder, pipelines(), choose_mlp(gpu, shape),
          {.gate = gate_buffer.all(), .up = up_buffer.all(), .y = y_buffer.all(), .shape = shape});
    });
    std::vector<double> reference;
    for (size_t i = 0; i < count; ++i)
      reference.push_back(expected(shape, double{gate[i]}, double{up[i]}));
    EXPECT_LT(nmse(read_halves(read<uint32_t>(y_buffer)), reference), kHalvesLimit)
        << rows << " x " << width;
  }
}

// If e^x overflows or everything cancels, the result must still be a number, and the correct one.
TEST_F(MlpActivationTest, ExtremeGatesGiveFiniteResults) {
  const std::vector<float> gate = {0.0f,  -0.0f,  100.0f, -100.0f, 1e4f,  -1e4f, 3e38f, -3e38f,
                                   88.0f, -88.0f, 20.0f,  -20.0f,  1e-9f, -9.0f, 9.0f,  1e-30f};
  const std::vector<float> up(gate.size(), 0.5f);
  for (const MlpActivation activation : {MlpActivation::kSilu, MlpActivation::kGeluTanh}) {
    const MlpShape shape{.rows = 1, .width = 16, .activation = activation};
    const Buffer gate_buffer = filled(gate), up_buffer = filled(up);
    run([&](CommandRecorder& recorder) {
      return record_mlp(
          recorder, pipelines(), choose_mlp(device().caps(), shape),
          {.gate = gate_buffer.all(), .up = up_buffer.all(), .y = up_buffer.all(), .shape = shape});
    });
    const std::vector<float> y = read<float>(up_buffer);
    for (size_t i = 0; i < gate.size(); ++i) {
      const double reference = expected(shape, double{gate[i]}, 0.5);
      // 3e38 / e^80 remains of the largest negative gate.
      EXPECT_NEAR(double{y[i]}, reference, std::abs(reference) * 1e-5 + 1e4) << gate[i];
      if (std::abs(gate[i]) < 1e30f) {
        EXPECT_NEAR(double{y[i]}, reference, std::abs(reference) * 1e-5 + 1e-7) << gate[i];
      }
    }
  }
}

TEST_F(MlpActivationTest, UnsupportedShapesAreRefused) {
  const Buffer any = poisoned(64);
  for (const auto& [width, stride] : {std::pair{0u, 0u}, {8u, 4u}, {8u, 10u}}) {
    const MlpShape shape{.rows = 1, .width = width};
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
    const Status status = record_mlp(
        recorder, pipelines(), choose_mlp(device().caps(), shape),
        {.gate = any.all(), .up = any.all(), .y = any.all(), .shape = shape, .stride = stride});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kInvalid);
  }
}

}  // namespace
}  // namespace hearth::testing
