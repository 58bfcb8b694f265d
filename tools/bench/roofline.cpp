#include "tools/bench/roofline.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/scheduling/sequence.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/step_profile.h"

namespace hearth {
namespace {

constexpr uint32_t kPromptTokens = 512;
constexpr uint32_t kDecodeContext = 256;

struct Step {
  std::string name;
  uint32_t batch = 1, position = 0, rows = 1;
};

// Each as large as the session has room for.
std::vector<Step> steps_to_measure(const StepRunnerOptions& runner) {
  const StepLimits& limits = runner.limits;
  const uint32_t pool_tokens = runner.kv_blocks * kTokensPerBlock;
  const uint32_t longest = std::min(limits.context, pool_tokens);
  std::vector<Step> steps;
  if (const uint32_t rows = std::min({kPromptTokens, limits.rows, longest}); rows > 1)
    steps.push_back({fmt::format("prompt of {}", rows), 1, 0, rows});
  const uint32_t position = std::min(kDecodeContext, longest - 1);
  steps.push_back({"decode, 1 sequence", 1, position, 1});
  const uint32_t fits = runner.kv_blocks / blocks_for(position + 1);
  if (const uint32_t batch = std::min({runner.slots, limits.sequences, limits.rows, fits});
      batch > 1)
    steps.push_back({fmt::format("decode, {} sequences", batch), batch, position, 1});
  return steps;
}

}  // namespace

Result<RooflineData> measure_roofline(Session& session) {
  KernelBench bench(session.device(), session.pipelines());
  HEARTH_ASSIGN(const Ceilings ceilings, bench.measure_ceilings());
  RooflineData data{.read_bytes_per_s = ceilings.read_bytes_per_s,
                    .flops_per_s = ceilings.flops_per_s,
                    .matrix_flops_per_s = ceilings.matrix_flops_per_s};
  for (const Step& step : steps_to_measure(session.runner().options())) {
    HEARTH_ASSIGN(const StepProfile profile,
                  profile_step(session, step.batch, step.position, step.rows, ceilings));
    for (const PartTime& part : profile.parts)
      data.dots.push_back({.part = part.part,
                           .kernels = part.kernels,
                           .step = step.name,
                           .calls = part.calls,
                           .seconds = part.seconds,
                           .bytes = part.cost.bytes,
                           .flops = part.cost.flops,
                           .share = part.ceiling.share});
  }
  return data;
}

}  // namespace hearth
