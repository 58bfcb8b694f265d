#include "tools/bench/reports.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hearth {
namespace {

// "62.3% read": of the ceiling of reading.
std::string share_text(const CeilingShare& ceiling) {
  return fmt::format("{:.1f}% {}", ceiling.share * 100, ceiling.of);
}

}  // namespace

nlohmann::json to_json(const Ceilings& ceilings) {
  return {{"read_bytes_per_s", ceilings.read_bytes_per_s},
          {"flops_per_s", ceilings.flops_per_s},
          {"matrix_flops_per_s", ceilings.matrix_flops_per_s}};
}

nlohmann::json to_json(const KernelTime& time) {
  return {{"kernel", time.kernel},
          {"variant", time.variant},
          {"shape", time.shape},
          {"seconds", time.seconds},
          {"bytes_per_s", time.bytes_per_s},
          {"flops_per_s", time.flops_per_s},
          {"share", time.ceiling.share},
          {"share_of", time.ceiling.of}};
}

nlohmann::json to_json(const ModelTime& time) {
  return {{"test", time.test},
          {"batch", time.batch},
          {"tokens", time.tokens},
          {"tokens_per_s", time.tokens_per_s},
          {"stddev", time.stddev},
          {"ms_per_token", time.ms_per_token()},
          {"ms_per_step", time.ms_per_step()},
          {"steps", time.steps},
          {"bytes_per_s", time.bytes_per_s},
          {"flops_per_s", time.flops_per_s},
          {"share", time.ceiling.share},
          {"share_of", time.ceiling.of}};
}

nlohmann::json to_json(const StepProfile& profile) {
  nlohmann::json parts = nlohmann::json::array();
  for (const PartTime& part : profile.parts)
    parts.push_back({{"part", part.part},
                     {"kernels", part.kernels},
                     {"calls", part.calls},
                     {"seconds", part.seconds},
                     {"bytes", part.cost.bytes},
                     {"flops", part.cost.flops},
                     {"share", part.ceiling.share},
                     {"share_of", part.ceiling.of}});
  return {{"test", profile.test},
          {"batch", profile.batch},
          {"tokens", profile.tokens},
          {"context", profile.context},
          {"step_seconds", profile.step_seconds},
          {"parts", parts}};
}

void print_ceilings(const DeviceCaps& caps, const Ceilings& ceilings) {
  fmt::print("{}\nceilings, measured: {:.1f} GB/s read, {:.3f} TFLOP/s in f32{}\n", caps.name,
             ceilings.read_bytes_per_s * 1e-9, ceilings.flops_per_s * 1e-12,
             ceilings.matrix_flops_per_s > 0 ? fmt::format(", {:.1f} TFLOP/s on matrix units",
                                                           ceilings.matrix_flops_per_s * 1e-12)
                                             : std::string());
  fmt::print(
      "of ceiling: the test's share of the ceiling that limits it, and which ceiling that is\n\n");
}

void print_kernel_header() {
  fmt::print("{:<16} {:<26} {:>12} {:>10} {:>10} {:>13}  {}\n", "kernel", "shape", "time us",
             "GB/s", "TFLOP/s", "of ceiling", "variant");
}

void print(const KernelTime& time) {
  fmt::print("{:<16} {:<26} {:>12.2f} {:>10.1f} {:>10.3f} {:>13}  {}\n", time.kernel, time.shape,
             time.seconds * 1e6, time.bytes_per_s * 1e-9, time.flops_per_s * 1e-12,
             share_text(time.ceiling), time.variant);
}

void print_model_header() {
  fmt::print("{:<8} {:>6} {:>8} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>13}\n", "test",
             "batch", "tokens", "tokens/s", "+/-", "ms/token", "ms/step", "GB/s", "TFLOP/s",
             "of ceiling");
}

void print(const ModelTime& time) {
  fmt::print(
      "{:<8} {:>6} {:>8} {:>12.1f} {:>10.1f} {:>10.4f} {:>10.3f} {:>10.2f} {:>10.4f} {:>13}\n",
      time.test, time.batch, time.tokens, time.tokens_per_s, time.stddev, time.ms_per_token(),
      time.ms_per_step(), time.bytes_per_s * 1e-9, time.flops_per_s * 1e-12,
      share_text(time.ceiling));
}

void print(const StepProfile& profile) {
  double total = 0;
  for (const PartTime& part : profile.parts) total += part.seconds;
  fmt::print(
      "{} step: {} sequences, {} tokens after a context of {}: {:.3f} ms as replayed, "
      "{:.3f} ms as the sum of its kernels\n",
      profile.test, profile.batch, profile.tokens, profile.context, profile.step_seconds * 1e3,
      total * 1e3);
  fmt::print("{:<14} {:>6} {:>11} {:>8} {:>10} {:>10} {:>13}  {}\n", "part", "calls", "time us",
             "of step", "GB/s", "TFLOP/s", "of ceiling", "kernels");
  for (const PartTime& part : profile.parts) {
    const double seconds = part.seconds > 0 ? part.seconds : 1;
    fmt::print("{:<14} {:>6} {:>11.1f} {:>7.1f}% {:>10.2f} {:>10.4f} {:>13}  {}\n", part.part,
               part.calls, part.seconds * 1e6, part.seconds / total * 100,
               part.cost.bytes / seconds * 1e-9, part.cost.flops / seconds * 1e-12,
               share_text(part.ceiling), part.kernels);
  }
  fmt::print("\n");
}

}  // namespace hearth
