// Matrix products with random weights, compared with the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "engine/ops/matmul.h"
#include "engine/weights/quantize.h"
#include "engine/weights/repack.h"
#include "tests/support/compare.h"
#include "tests/support/fake_devices.h"
#include "tests/support/gpu.h"
#include "tests/support/reference.h"
#include "tests/support/reference_mlp.h"
#include "tests/support/row_form.h"

namespace hearth::testing {

// NMSE limits. Products of halves are exact in f32.
inline constexpr double kFloatLimit = 1e-10;
inline constexpr double kHalfLimit = 1e-6;  // matrix units read x and weights as f16

// Integer kernels round x to multiples of m / 32512, where m is the largest of a piece of 32. The
// error of an element has a variance of (m / 32512)^2 / 12, and a piece has a power of at least
// m^2, so the NMSE of x is at most 32 / 12 / 32512^2 = 2.5e-9, and so is that of the product of
// weights that are independent of x. The limit allows four times that.
inline constexpr double kIntegerLimit = 1e-8;
// With offsets the kernel multiplies x by weight - offset. If an outlier sets the range of a piece,
// that is as large as the outlier for all 32 weights, so the error has up to 32 times the power.
// All outputs share the errors of x, so they do not average out: the limit allows six times that.
inline constexpr double kOffsetLimit = 5e-7;

// A random matrix in device layout, and the values it represents.
struct Weights {
  std::vector<std::byte> device;
  std::vector<float> values;
};

inline Weights random_weights(WeightFormat format, uint32_t outputs, uint32_t inputs,
                              float size = 0.05f, uint32_t seed = 0) {
  const FormatInfo& info = format_info(format);
  const std::vector<float> floats =
      random_floats(size_t{outputs} * inputs, outputs * 31 + inputs + seed, size);
  const uint64_t blocks = uint64_t{outputs} * inputs / info.block_weights;
  std::vector<std::byte> file(blocks * info.block_bytes);
  const size_t row_bytes = file.size() / outputs;
  for (uint32_t n = 0; n < outputs; ++n) {
    const Status status =
        quantize_row(format, std::span(floats).subspan(size_t{n} * inputs, inputs),
                     std::span(file).subspan(n * row_bytes, row_bytes));
    EXPECT_TRUE(status.ok());
  }
  Weights weights;
  weights.device.resize(device_layout(format, blocks).total_bytes);
  repack_matrix(format, file, weights.device);
  weights.values.resize(floats.size());
  for (uint32_t n = 0; n < outputs; ++n)
    dequantize_row(format, weights.device.data(), {outputs, inputs}, n,
                   weights.values.data() + size_t{n} * inputs);
  return weights;
}

class MatmulFixture : public GpuTest {
 protected:
  DeviceCaps gpu_caps(bool integer_dot) {
    DeviceCaps caps = as_h200(device().caps());  // with its many kinds of tiles
    caps.type = DeviceType::kDiscrete;
    caps.features.integer_dot = integer_dot;
    return caps;
  }

  // Runs the product and returns y, after checking that nothing past its end was written. A
  // non-empty `residual` is in y before, and the product adds to it.
  std::vector<float> multiply(const MatmulPlan& plan, const MatmulShape& shape,
                              const Weights& weights, const std::vector<float>& x,
                              const std::vector<float>& residual = {}) {
    const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
    const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
    const Buffer counts = zero_counts(plan);
    const size_t count = size_t{shape.rows} * shape.outputs;
    std::vector<float> before(count + shape.outputs, std::numeric_limits<float>::quiet_NaN());
    std::ranges::copy(residual, before.begin());
    const Buffer y_buffer = filled(before);
    run([&](CommandRecorder& recorder) {
      Matmul op{.weight = weight_buffer.all(),
                .x = x_buffer.all(),
                .y = y_buffer.slice(0, count * 4),
                .scratch = scratch.all(),
                .counts = counts.all(),
                .shape = shape};
      if (!residual.empty()) op.residual = op.y;
      return record_matmul(recorder, pipelines(), plan, op);
    });
    std::vector<float> y = read<float>(y_buffer);
    for (size_t i = count; i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(count);
    return y;
  }

  static double limit(const MatmulPlan& plan) {
    const std::string& kernel = plan.multiply.pipeline.kernel;
    if (plan.form == RowForm::kHalves) return kHalfLimit;
    if (!kernel.starts_with("matvec_integer")) return kFloatLimit;
    const auto format = parse_format(kernel.substr(kernel.find('.') + 1));
    return format_info(format.value()).has_offset ? kOffsetLimit : kIntegerLimit;
  }

  void check(const DeviceCaps& caps, const MatmulShape& shape, float weight_size = 0.05f) {
    check_plan(choose_matmul(caps, shape), shape, weight_size);
  }

  void check_plan(const MatmulPlan& plan, const MatmulShape& shape, float weight_size = 0.05f) {
    const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, weight_size);
    const std::vector<float> x =
        random_floats(size_t{shape.rows} * shape.inputs, shape.inputs + shape.rows);
    const double error =
        nmse(multiply(plan, shape, weights, x),
             reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs));
    EXPECT_LT(error, limit(plan)) << plan.multiply.pipeline.kernel << ": " << shape.rows << " x "
                                  << shape.outputs << " x " << shape.inputs;
  }

  // The same with a residual that y already holds.
  void check_sum(const MatmulPlan& plan, const MatmulShape& shape) {
    const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.05f);
    const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 3);
    const std::vector<float> residual = random_floats(size_t{shape.rows} * shape.outputs, 4);
    std::vector<double> reference =
        reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs);
    for (size_t i = 0; i < reference.size(); ++i) reference[i] += residual[i];
    EXPECT_LT(nmse(multiply(plan, shape, weights, x, residual), reference), limit(plan));
  }

  // The same with one half of the outputs as gates for the other half.
  void check_gates(const MatmulPlan& plan, const MatmulShape& shape,
                   MlpActivation activation = MlpActivation::kSilu, bool halves = false) {
    const Weights weights = random_weights(shape.format, shape.outputs, shape.inputs, 0.3f);
    const std::vector<float> x = random_floats(size_t{shape.rows} * shape.inputs, 5);
    const std::vector<double> reference = reference_gated(
        reference_matmul(weights.values, x, shape.rows, shape.inputs, shape.outputs), shape.rows,
        shape.outputs, activation);
    const Buffer weight_buffer = filled(weights.device), x_buffer = filled(x);
    const Buffer scratch = poisoned(std::max<uint64_t>(plan.scratch_bytes, 16));
    const Buffer counts = zero_counts(plan);
    const Buffer y_buffer = poisoned(reference.size() * (halves ? 2 : 4) + 64);
    run([&](CommandRecorder& recorder) {
      return record_matmul(recorder, pipelines(), plan,
                           {.weight = weight_buffer.all(),
                            .x = x_buffer.all(),
                            .y = y_buffer.slice(0, y_buffer.bytes() - 64),
                            .scratch = scratch.all(),
                            .counts = counts.all(),
                            .gate = activation,
                            .half_results = halves,
                            .shape = shape});
    });
    std::vector<float> y = halves ? read_halves(read<uint32_t>(y_buffer)) : read<float>(y_buffer);
    for (size_t i = reference.size(); i < y.size(); ++i)
      EXPECT_TRUE(std::isnan(y[i])) << "written past the end";
    y.resize(reference.size());
    EXPECT_LT(nmse(y, reference), 2 * limit(plan))
        << shape.rows << (halves ? " halves" : " floats");
  }

  // Makes all tiles after the first tail tiles with three splits each.
  static void split_tail_tiles(MatmulPlan& plan) {
    constexpr uint32_t kWhole = 1, kSplits = 3;
    ASSERT_FALSE(plan.reduce || plan.shared);
    SharedTiles shared{.multiply = plan.multiply, .whole_tiles = kWhole};
    KernelConstants& constants = shared.multiply.pipeline.constants;
    constants.set("kTailSplits", kSplits);
    const uint32_t left = plan.multiply.groups.x * plan.multiply.groups.y - kWhole;
    ASSERT_GT(left, 0u);
    shared.multiply.groups = {.x = kWhole + left * kSplits};
    shared.count_bytes = uint64_t{left} * 4;
    plan.part_bytes =
        uint64_t{left} * kSplits * constants["kTileRows"] * constants["kTileOutputs"] * 4;
    plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
    plan.shared = shared;
  }

  // The counters of tail tiles.
  Buffer zero_counts(const MatmulPlan& plan) {
    return filled(std::vector<uint32_t>(plan.shared ? plan.shared->count_bytes / 4 : 1, 0));
  }
};

}  // namespace hearth::testing
