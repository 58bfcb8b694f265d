// A graphics card and a model on it as a handful of numbers, and how long steps would take there.
// Used by `hearth replay --simulate` and by `hearth dash --demo`. Pure.
//
// Time follows the roofline: each part of a step takes as long as its bytes or its arithmetic,
// whichever is more, and parts run one after the other. That gets right what the scheduling
// policies differ in: a decode step costs about the same for one sequence as for sixteen, because
// the weights are read once; a prompt costs by its tokens; padding, recomputed tokens and swapped
// blocks cost what they would on a real card. It leaves out everything else that a real card does,
// so times are plausible, not predictions.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model/step_batch.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

struct ModelledDevice {
  // The card: an entry-level one with 8 GB. Its data sheet would say 224 GB/s, 18 TFLOP/s for
  // half-precision matrices and PCIe 4.0 x8; these rates are what good kernels reach of that.
  std::string card = "modelled 8 GB card";
  uint64_t memory_bytes = uint64_t{8} << 30;
  double memory_bytes_per_s = 180e9;      // device memory
  double matmul_flops_per_s = 10e12;      // products with weights
  double attention_flops_per_s = 4e12;    // smaller products, and the softmax between them
  double host_link_bytes_per_s = 12e9;    // each way, for swapped blocks
  double step_overhead_seconds = 400e-6;  // launching a step's kernels, whatever is in it
  double move_overhead_seconds = 30e-6;   // launching one list of block moves

  // The model: 1.2 billion parameters in the proportions of small Llama models, weights in Q8_0.
  std::string model = "modelled 1.2 B model";
  uint32_t layers = 16;
  uint32_t width = 2048;
  uint32_t heads = 32, kv_heads = 8, head_size = 64;
  uint32_t mlp_width = 8192;
  uint32_t vocabulary = 128'256;
  uint32_t context = 8192;              // tokens
  double bytes_per_weight = 34.0 / 32;  // Q8_0: blocks of 32 weights and a 16-bit scale
  double bytes_per_kv_value = 2;        // half precision
  uint32_t max_step_tokens = 256;       // the default; 256 prompt tokens take about 50 ms

  double layer_weights() const;   // of all layers
  double output_weights() const;  // of the product that makes logits
  double weight_bytes() const;
  double kv_bytes_per_token() const;
  double kv_bytes_per_block() const;
  std::string describe_card() const;  // its name and its rates
};

// The work of a step. Rows of padding count like any other.
struct StepWork {
  uint64_t rows = 0;        // tokens that go through the layers
  uint64_t logit_rows = 0;  // rows whose logits are computed
  uint64_t kv_tokens = 0;   // whose keys and values attention reads, added up over sequences
  uint64_t row_keys = 0;    // keys that a row attends to, added up over rows
};
StepWork step_work(const StepBatch& batch);

double step_seconds(const ModelledDevice& device, const StepWork& work);
double swap_seconds(const ModelledDevice& device, uint64_t blocks);
double copy_seconds(const ModelledDevice& device, uint64_t blocks);

// What the user asked for; 0: what suits the device.
struct ModelledLimits {
  uint32_t max_sequences = 16, max_step_tokens = 0, context = 0, kv_blocks = 0;
  uint64_t swap_bytes = 0;
  uint32_t max_queue = 4096;
};
// The limits of an engine on the device, as `hearth replay` would set them on a real one.
SchedulerLimits scheduler_limits(const ModelledDevice& device, const ModelledLimits& wanted);

}  // namespace hearth
