#include "tools/replay/modelled_device.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace hearth {

double ModelledDevice::layer_weights() const {
  const double attention = 1.0 * width * head_size * (2.0 * heads + 2.0 * kv_heads);
  const double mlp = 3.0 * width * mlp_width;
  return layers * (attention + mlp);
}

double ModelledDevice::output_weights() const { return 1.0 * width * vocabulary; }

double ModelledDevice::weight_bytes() const {
  return (layer_weights() + output_weights()) * bytes_per_weight;
}

double ModelledDevice::kv_bytes_per_token() const {
  return 2.0 * layers * kv_heads * head_size * bytes_per_kv_value;
}

double ModelledDevice::kv_bytes_per_block() const { return kv_bytes_per_token() * kTokensPerBlock; }

std::string ModelledDevice::describe_card() const {
  return fmt::format("{} ({:.0f} GB/s, {:.0f} TFLOP/s, host link {:.0f} GB/s)", card,
                     memory_bytes_per_s / 1e9, matmul_flops_per_s / 1e12,
                     host_link_bytes_per_s / 1e9);
}

StepWork step_work(const StepBatch& batch) {
  StepWork work{.rows = batch.rows(), .logit_rows = batch.logit_rows.size()};
  for (const params::StepSequence& sequence : batch.sequences) {
    const uint64_t rows = sequence.rows, before = sequence.first_position;
    work.kv_tokens += before + rows;
    // Row i sees what came before the step, the rows ahead of it, and itself.
    work.row_keys += rows * before + rows * (rows + 1) / 2;
  }
  return work;
}

double step_seconds(const ModelledDevice& device, const StepWork& work) {
  const auto rows = static_cast<double>(work.rows);
  const auto logit_rows = static_cast<double>(work.logit_rows);
  // A product of `product_rows` rows with `weights` weights, each of which is read once.
  const auto product = [&](double weights, double product_rows) {
    if (product_rows == 0) return 0.0;
    return std::max(weights * device.bytes_per_weight / device.memory_bytes_per_s,
                    2 * weights * product_rows / device.matmul_flops_per_s);
  };
  // Keys and values are read for each sequence and written for each row; a query and a key make
  // 2 * head_size operations, and so does adding up a value.
  const double kv_bytes =
      (static_cast<double>(work.kv_tokens) + rows) * device.kv_bytes_per_token();
  const double attention_flops =
      4.0 * device.layers * device.heads * device.head_size * static_cast<double>(work.row_keys);
  const double attention = std::max(kv_bytes / device.memory_bytes_per_s,
                                    attention_flops / device.attention_flops_per_s);
  return device.step_overhead_seconds + product(device.layer_weights(), rows) + attention +
         product(device.output_weights(), logit_rows);
}

double swap_seconds(const ModelledDevice& device, uint64_t blocks) {
  return device.move_overhead_seconds +
         static_cast<double>(blocks) * device.kv_bytes_per_block() / device.host_link_bytes_per_s;
}

double copy_seconds(const ModelledDevice& device, uint64_t blocks) {
  // Read and written.
  return device.move_overhead_seconds +
         2 * static_cast<double>(blocks) * device.kv_bytes_per_block() / device.memory_bytes_per_s;
}

SchedulerLimits scheduler_limits(const ModelledDevice& device, const ModelledLimits& wanted) {
  constexpr double kUsableMemory = 0.9;  // the rest is activations and the desktop's
  SchedulerLimits limits;
  limits.max_sequences = wanted.max_sequences;
  limits.context = wanted.context == 0 ? device.context : std::min(wanted.context, device.context);
  const uint32_t step_tokens =
      wanted.max_step_tokens == 0 ? device.max_step_tokens : wanted.max_step_tokens;
  // A decode step has a row for every sequence.
  limits.max_step_tokens =
      wanted.max_step_tokens == 0 ? std::max(step_tokens, wanted.max_sequences) : step_tokens;
  const double fits =
      (static_cast<double>(device.memory_bytes) * kUsableMemory - device.weight_bytes()) /
      device.kv_bytes_per_block();
  // More than every sequence at its longest are of no use.
  const double useful = 1.0 * limits.max_sequences * blocks_for(limits.context);
  limits.pool_blocks =
      wanted.kv_blocks != 0 ? wanted.kv_blocks : static_cast<uint32_t>(std::min(fits, useful));
  limits.swap_blocks = static_cast<uint32_t>(
      std::min(static_cast<double>(wanted.swap_bytes) / device.kv_bytes_per_block(), 1e6));
  limits.max_queue = wanted.max_queue;
  return limits;
}

}  // namespace hearth
