// How long products take with kernels that are not chosen yet, to find those that should be.
// Built with the tests, run by hand:
//   tile_variants.py F16 64 28672 4096 | tools/vulkan-run matmul_sweep | sort -n
//
// Reads one variant per line, compiles all of them in parallel, and times them one after the other:
//   KERNEL ROWS OUTPUTS INPUTS GROUPS_X GROUPS_Y GROUPS_Z CONSTANT...
// and prints the time in us, TFLOP/s, GB/s of weights, and the line. Sums of a split k stay in
// parts. Results are not looked at: constants that do not fit the product are timed, too.
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "engine/ops/matmul.h"
#include "engine/weights/formats.h"
#include "params/matmul.h"
#include "runtime/instance.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

struct Variant {
  std::string line;
  PipelineInfo pipeline;
  uint32_t rows = 0, outputs = 0, inputs = 0;
  GroupCount groups;
  const FormatInfo* format = nullptr;

  uint64_t weight_bytes() const {
    return device_layout(format->format, uint64_t{outputs} * inputs / format->block_weights)
        .total_bytes;
  }
  uint32_t constant(size_t i) const {
    const std::span<const uint32_t> words = pipeline.constants.words();
    return i < words.size() ? words[i] : 0;
  }
  uint64_t tile_bytes() const { return uint64_t{constant(2)} * constant(3) * 4; }
  // Floats from row to row of the parts of a split k.
  uint32_t partial_stride() const { return divide_up(outputs, kPartUnit) * kPartUnit; }
  // Results, or with a split k at most parts of whole tiles, whose size the second and third
  // constant are.
  uint64_t result_bytes() const {
    if (groups.z == 1) return uint64_t{rows} * outputs * 4;
    return tile_bytes() * groups.x * groups.y * groups.z;
  }
  // How many groups share a tile of matmul_coopmat or matmul_wide, and how many tiles nobody
  // shares.
  uint32_t share() const {
    const bool wide = pipeline.kernel.starts_with("matmul_wide");
    const bool coopmat = pipeline.kernel.starts_with("matmul_coopmat");
    return std::max(1u, wide ? constant(5) : coopmat ? constant(17) : 1);
  }
  uint32_t whole_tiles() const {
    if (share() == 1) return 0;
    const uint32_t tiles = divide_up(rows, constant(2)) * divide_up(outputs, constant(3));
    return (tiles * share() - groups.x) / (share() - 1);
  }
  uint64_t shared_bytes() const { return share() == 1 ? 0 : tile_bytes() * groups.x; }
};

Result<Variant> parse(const std::string& line, uint32_t subgroup_size) {
  Variant variant{.line = line};
  std::istringstream words(line);
  words >> variant.pipeline.kernel >> variant.rows >> variant.outputs >> variant.inputs >>
      variant.groups.x >> variant.groups.y >> variant.groups.z;
  std::vector<uint32_t> constants;
  for (uint32_t constant = 0; words >> constant;) constants.push_back(constant);
  const size_t given = constants.size();
  variant.pipeline.constants = KernelConstants::unnamed(std::move(constants));
  variant.pipeline.subgroup_size = subgroup_size;
  const std::string& kernel = variant.pipeline.kernel;
  for (const FormatInfo& format : all_formats())
    if (kernel.ends_with(fmt::format(".{}", format.header))) variant.format = &format;
  if (variant.format == nullptr || given < 4)
    return Error{ErrorKind::kInvalid, fmt::format("not a variant: {}", line)};
  return variant;
}

Result<std::vector<Variant>> read_variants(const DeviceCaps& caps) {
  std::vector<Variant> variants;
  for (std::string line; std::getline(std::cin, line);) {
    HEARTH_ASSIGN(Variant variant, parse(line, is_cpu(caps) ? 0 : caps.subgroup_size));
    variants.push_back(std::move(variant));
  }
  if (variants.empty()) return Error{ErrorKind::kInvalid, "no variants on standard input"};
  return variants;
}

// Buffers that hold any of the products. Weights rotate, so that no cache holds them.
struct Operands {
  const Buffer *weights = nullptr, *x = nullptr, *y = nullptr, *parts = nullptr, *counts = nullptr;
  uint64_t rotation = 0;
};

Result<Operands> make_operands(KernelBench& bench, KernelCaseSet& set,
                               std::span<const Variant> variants) {
  uint64_t weights = 0, x = 0, y = 0, parts = 4, counts = 4;
  for (const Variant& variant : variants) {
    weights = std::max(weights, variant.weight_bytes());
    x = std::max(x, uint64_t{variant.rows} * variant.inputs * 4);
    y = std::max(y, variant.result_bytes());
    parts = std::max(parts, variant.shared_bytes());
    counts = std::max(counts, uint64_t{variant.groups.x} * 4);
  }
  Operands operands{.rotation = is_cpu(bench.device().caps()) ? 64ull << 20 : 1ull << 30};
  HEARTH_ASSIGN(operands.weights, add_filled(bench, set, operands.rotation + weights));
  HEARTH_ASSIGN(operands.x, add_filled(bench, set, x));
  HEARTH_ASSIGN(operands.y, add_filled(bench, set, y));
  HEARTH_ASSIGN(operands.parts, add_filled(bench, set, parts));
  HEARTH_ASSIGN(operands.counts, add_filled(bench, set, counts, 0));
  return operands;
}

KernelCase make_case(KernelBench& bench, const Variant& variant, const Operands& operands) {
  const uint64_t bytes = variant.weight_bytes();
  return {
      .kernel = variant.pipeline.kernel,
      .variant = variant.line,
      .shape = "",
      .cost = {.memory_bytes = static_cast<double>(bytes),
               .operations = 2.0 * variant.rows * variant.outputs * variant.inputs},
      .matrix_units = true,
      .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) -> Status {
        HEARTH_ASSIGN(const Pipeline* pipeline, bench.pipelines().get(variant.pipeline));
        const uint64_t stride = (bytes + 255) / 256 * 256;
        const BufferSlice weight =
            operands.weights->slice(repetition % (operands.rotation / stride + 1) * stride, bytes);
        recorder.dispatch({.pipeline = *pipeline,
                           .arguments = params::Matmul{.weight = weight,
                                                       .x = operands.x->all(),
                                                       .y = operands.y->all(),
                                                       .residual = operands.y->all(),
                                                       .counts = operands.counts->all(),
                                                       .tail_partials = operands.parts->all(),
                                                       .rows = variant.rows,
                                                       .inputs = variant.inputs,
                                                       .outputs = variant.outputs,
                                                       .whole_tiles = variant.whole_tiles(),
                                                       .partial_stride = variant.partial_stride()},
                           .groups = variant.groups});
        return {};
      }};
}

Status run() {
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(const auto device, Device::open(*instance, {}));
  HEARTH_ASSIGN(const auto pipelines, PipelineStore::create(*device));
  HEARTH_ASSIGN(const std::vector<Variant> variants, read_variants(device->caps()));
  std::vector<PipelineInfo> infos;
  for (const Variant& variant : variants) infos.push_back(variant.pipeline);
  HEARTH_TRY(pipelines->prepare(infos));

  KernelBench bench(*device, *pipelines);
  KernelCaseSet set;
  HEARTH_ASSIGN(const Operands operands, make_operands(bench, set, variants));
  for (const Variant& variant : variants) {
    HEARTH_ASSIGN(const KernelTime time, bench.measure(make_case(bench, variant, operands), {}));
    fmt::print("{:9.2f} {:7.1f} {:7.0f}  {}\n", time.seconds * 1e6, time.flops_per_s / 1e12,
               time.bytes_per_s / 1e9, time.variant);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace hearth

int main() {
  const hearth::Status status = hearth::run();
  if (!status.ok()) fmt::print(stderr, "matmul_sweep: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
