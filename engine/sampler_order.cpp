#include "engine/sampler_order.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

// Beyond the samplers that have a place of their own.
enum class OtherSampler : uint8_t { kNone, kPenalties, kDry, kIgnored };

struct SamplerName {
  std::string_view name;
  SamplerKind kind = SamplerKind::kNone;
  OtherSampler other = OtherSampler::kNone;
  bool main = false;  // the name that help and errors show
};

constexpr SamplerName kSamplerNames[] = {
    {"penalties", SamplerKind::kNone, OtherSampler::kPenalties, true},
    {"repetition_penalty", SamplerKind::kNone, OtherSampler::kPenalties},
    {"presence_penalty", SamplerKind::kNone, OtherSampler::kPenalties},
    {"frequency_penalty", SamplerKind::kNone, OtherSampler::kPenalties},
    {"dry", SamplerKind::kNone, OtherSampler::kDry, true},
    {"top_n_sigma", SamplerKind::kTopNSigma, {}, true},
    {"top_k", SamplerKind::kTopK, {}, true},
    {"typ_p", SamplerKind::kTypicalP, {}, true},
    {"typical_p", SamplerKind::kTypicalP},
    {"typical", SamplerKind::kTypicalP},
    {"typ", SamplerKind::kTypicalP},
    {"top_p", SamplerKind::kTopP, {}, true},
    {"nucleus", SamplerKind::kTopP},
    {"min_p", SamplerKind::kMinP, {}, true},
    {"top_a", SamplerKind::kTopA, {}, true},
    {"epsilon_cutoff", SamplerKind::kEpsilonCutoff, {}, true},
    {"eta_cutoff", SamplerKind::kEtaCutoff, {}, true},
    {"xtc", SamplerKind::kXtc, {}, true},
    {"temperature", SamplerKind::kTemperature, {}, true},
    {"temp", SamplerKind::kTemperature},
    {"dynamic_temperature", SamplerKind::kTemperature},
    {"smoothing", SamplerKind::kSmoothing, {}, true},
    {"quadratic_sampling", SamplerKind::kSmoothing},
    // Mirostat has its place at the end. Hearth has no setting that turns the others on.
    {"mirostat", SamplerKind::kNone, OtherSampler::kIgnored},
    {"tfs", SamplerKind::kNone, OtherSampler::kIgnored},
    {"encoder_repetition_penalty", SamplerKind::kNone, OtherSampler::kIgnored},
    {"no_repeat_ngram", SamplerKind::kNone, OtherSampler::kIgnored},
};

std::vector<std::string_view> main_names() {
  std::vector<std::string_view> names;
  for (const SamplerName& each : kSamplerNames)
    if (each.main) names.push_back(each.name);
  return names;
}

}  // namespace

Result<SamplerOrder> parse_sampler_order(std::span<const std::string> names) {
  SamplerOrder order{.penalties = false, .dry = false, .samplers = {}};
  size_t count = 0;
  std::vector<std::string> seen;
  for (std::string name : names) {
    std::ranges::replace(name, '-', '_');
    const auto found = std::ranges::find(kSamplerNames, std::string_view(name), &SamplerName::name);
    if (found == std::end(kSamplerNames))
      return invalid(fmt::format("there is no sampler {}; there are {}", in_quotes(name),
                                 fmt::join(main_names(), ", ")));
    if (std::ranges::find(seen, name) != seen.end())
      return invalid(fmt::format("the sampler {} is listed twice", name));
    seen.push_back(name);
    if (found->other == OtherSampler::kIgnored) continue;
    if (found->other != OtherSampler::kNone) {
      const bool penalties = found->other == OtherSampler::kPenalties;
      if (count > 0 || (penalties && order.dry && !order.penalties))
        return invalid(fmt::format(
            "the sampler {} is out of place: penalties come first, then dry, then the others",
            name));
      (penalties ? order.penalties : order.dry) = true;
      continue;
    }
    if (!order.lists(found->kind)) order.samplers[count++] = found->kind;
  }
  return order;
}

std::string sampler_order_text(const SamplerOrder& order) {
  std::vector<std::string_view> names;
  if (order.penalties) names.push_back("penalties");
  if (order.dry) names.push_back("dry");
  for (const SamplerKind kind : order.samplers)
    for (const SamplerName& each : kSamplerNames)
      if (each.main && kind != SamplerKind::kNone && each.kind == kind) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ";"));
}

}  // namespace hearth
