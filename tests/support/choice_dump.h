// Every choice of kernels for many shapes on a device as text, one line each: for golden files, and
// for comparing two versions of the code.
#pragma once

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ops/attention.h"
#include "engine/ops/matmul.h"

namespace hearth::testing {

inline std::string dump_kernel(const KernelPlan& plan) {
  const auto& [x, y, z] = plan.groups;
  return fmt::format("{} [{}] / {} x {} {} {}", plan.pipeline.kernel,
                     fmt::join(plan.pipeline.constants.words(), " "), plan.pipeline.subgroup_size,
                     x, y, z);
}

inline std::string dump_matmul(const DeviceCaps& caps, const MatmulShape& shape,
                               bool deterministic = false) {
  const MatmulPlan plan = choose_matmul(caps, shape, deterministic);
  std::string text = fmt::format("{} {}x{}+{} rows {}{}: {}", format_info(shape.format).header,
                                 shape.outputs, shape.inputs, shape.sibling_outputs, shape.rows,
                                 deterministic ? " deterministic" : "", dump_kernel(plan.multiply));
  if (plan.prepare) text += "; prepare " + dump_kernel(*plan.prepare);
  if (plan.rest)
    text += fmt::format("; from {} {}", plan.rest->first_output, dump_kernel(plan.rest->multiply));
  if (plan.shared)
    text +=
        fmt::format("; after {} {}", plan.shared->whole_tiles, dump_kernel(plan.shared->multiply));
  if (plan.reduce) text += "; reduce " + dump_kernel(*plan.reduce);
  return text + fmt::format("; bytes {}\n", plan.scratch_bytes);
}

inline std::string dump_attention(const DeviceCaps& caps, const AttentionShape& shape,
                                  bool deterministic = false) {
  const AttentionPlan plan = choose_attention(caps, shape, deterministic);
  const AttentionBucket& bucket = shape.bucket;
  std::string text = fmt::format(
      "attention {} {}/{}x{} rows {} sequences {} of {} context {}{}{}: {}",
      kv_format_name(shape.kv), shape.heads, shape.kv_heads, shape.head_size, bucket.rows,
      bucket.sequences, bucket.sequence_rows, bucket.sequence_tokens, bucket.trees ? " trees" : "",
      deterministic ? " deterministic" : "", dump_kernel(plan.few));
  if (plan.many) text += "; many " + dump_kernel(*plan.many);
  const AttentionTuning& tuning = plan.tuning;
  return text + fmt::format("; tokens {} {} split {} items {} slots {}\n", tuning.few_tokens,
                            tuning.many_tokens, tuning.split_keys, tuning.wanted_items,
                            plan.capacity.slots);
}

struct DumpedMatrix {
  uint32_t outputs, inputs, sibling_outputs = 0;
};

template <class Formats, class Rows, class Matrices>
std::string dump_matmuls(const DeviceCaps& caps, const Formats& formats, const Rows& all_rows,
                         const Matrices& matrices) {
  std::string text;
  for (const WeightFormat format : formats)
    for (const DumpedMatrix& matrix : matrices)
      for (const uint32_t rows : all_rows)
        text += dump_matmul(caps, {.format = format,
                                   .rows = rows,
                                   .inputs = matrix.inputs,
                                   .outputs = matrix.outputs,
                                   .sibling_outputs = matrix.sibling_outputs});
  return text;
}

}  // namespace hearth::testing
