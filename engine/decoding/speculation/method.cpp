#include "engine/decoding/speculation/method.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

constexpr std::uint32_t kDefaultLength = 8;
constexpr std::string_view kSyntheticPrefix = "synthetic:";

constexpr std::array kMethodNames = {
    std::pair{std::string_view("off"), SpeculationMethod::kNone},
    std::pair{std::string_view("ngram"), SpeculationMethod::kNgram},
    std::pair{std::string_view("lookahead"), SpeculationMethod::kLookahead},
    std::pair{std::string_view("draft"), SpeculationMethod::kDraft},
    std::pair{std::string_view("tree"), SpeculationMethod::kTree},
    std::pair{std::string_view("auto"), SpeculationMethod::kAuto},
};

// A rate from 0 to 1, or NaN.
double read_rate(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double rate = std::strtod(copy.c_str(), &end);
  const bool whole = !copy.empty() && end == copy.c_str() + copy.size();
  return whole && rate >= 0 && rate <= 1 ? rate : std::nan("");
}

}  // namespace

std::optional<std::string> read_method(std::string_view text, SpeculationOptions& options) {
  for (const auto& [name, method] : kMethodNames)
    if (name == text) {
      options.method = method;
      return std::nullopt;
    }
  if (text.starts_with(kSyntheticPrefix)) {
    const double rate = read_rate(text.substr(kSyntheticPrefix.size()));
    if (std::isnan(rate)) return "needs a rate from 0 to 1, such as synthetic:0.7";
    options.method = SpeculationMethod::kSynthetic;
    options.synthetic_rate = rate;
    return std::nullopt;
  }
  std::string known;
  for (const auto& [name, method] : kMethodNames) known += std::string(name) + ", ";
  return "unknown value '" + std::string(text) + "'; use " + known + "or synthetic:RATE";
}

std::uint32_t most_proposed(const SpeculationOptions& options) {
  if (options.max_proposed != 0) return std::min(options.max_proposed, kMaxProposed);
  const bool short_chain =
      options.method == SpeculationMethod::kNgram || options.method == SpeculationMethod::kDraft;
  return short_chain ? kDefaultLength : kMaxProposed;
}

bool may_draft(SpeculationMethod method) {
  return method == SpeculationMethod::kDraft || method == SpeculationMethod::kTree ||
         method == SpeculationMethod::kAuto;
}

bool may_share(SpeculationMethod method) {
  return method == SpeculationMethod::kNgram || method == SpeculationMethod::kAuto;
}

bool weighs_costs(SpeculationMethod method) {
  return method == SpeculationMethod::kAuto || method == SpeculationMethod::kSynthetic;
}

}  // namespace hearth
