#include "tools/commands/sampler_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

std::vector<std::string> sampler_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find_first_of(";,", from), text.size());
    if (end > from) names.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return names;
}

}  // namespace

void SamplerOptionsGroup::declare(Options& options) {
  SamplerChoices& set = choices_;
  const auto number = [&](const char* names, std::optional<float>& value, const char* help,
                          double low, double high) -> Option& {
    return options.add(names, &value, help).range(low, high).advanced();
  };
  // The same ranges as check_stages().
  number("--typical P", set.typical_p,
         "Keep the tokens whose surprise is nearest to the average, up to probability P; 1 is off",
         0, 1)
      .alias("--typical-p");
  number("--top-nsigma N", set.top_n_sigma,
         "Drop tokens whose score is more than N standard deviations below the best; -1 is off", -1,
         1000)
      .alias("--top-n-sigma");
  number("--top-a A", set.top_a,
         "Drop tokens less likely than A times the square of the best one's probability", 0, 1);
  number("--epsilon-cutoff N", set.epsilon_cutoff, "Drop tokens less likely than N * 0.0001", 0,
         10000);
  number("--eta-cutoff N", set.eta_cutoff,
         "As --epsilon-cutoff, but lower where many tokens are likely", 0, 10000);
  number("--xtc-probability P", set.xtc_probability,
         "Probability of dropping all tokens above --xtc-threshold but the least likely of them", 0,
         1);
  number("--xtc-threshold P", set.xtc_threshold,
         "Probability above which XTC drops tokens (default: 0.1); above 0.5 is off", 0, 1);
  const Option& dynamic = number(
      "--dynatemp-range X", set.dynatemp_range,
      "Vary the temperature by up to X around --temp, higher where many tokens are likely", 0, 1e6);
  number("--dynatemp-exp X", set.dynatemp_exponent,
         "How the dynamic temperature grows with the entropy (default: 1)", 0.01, 100)
      .needs(dynamic);
  const Option& smoothing =
      number("--smoothing-factor X", set.smoothing_factor,
             "Bring likely tokens closer together and lower unlikely ones; 0 is off", 0, 100);
  number("--smoothing-curve X", set.smoothing_curve,
         "How steeply smoothing lowers unlikely tokens (default: 1)", 1, 3)
      .needs(smoothing);
  options
      .add("--mirostat N", &set.mirostat,
           "2 keeps the surprise of the text near --mirostat-ent and replaces all other samplers "
           "that drop tokens; 0 is off")
      .check([](const std::string& value) {
        return value == "0" || value == "2" ? "" : "must be 0 or 2";
      })
      .idle_at(0)
      .advanced();
  number("--mirostat-ent T", set.mirostat_tau, "Target surprise in bits (default: 5)", 0, 100);
  number("--mirostat-lr R", set.mirostat_eta, "Mirostat's learning rate (default: 0.1)", 0, 10);
  const Option& dry =
      number("--dry-multiplier X", set.dry_multiplier,
             "Strength of the penalty for continuing a repetition (DRY); 0 is off", 0, 100);
  number("--dry-base X", set.dry_base,
         "Growth of the DRY penalty per repeated token (default: 1.75)", 1, 100)
      .needs(dry);
  options
      .add("--dry-allowed-length N", &set.dry_allowed_length,
           "Repeated tokens before DRY's penalty begins to grow (default: 2)")
      .range(1, 1e9)
      .needs(dry)
      .advanced();
  options
      .add("--dry-penalty-last-n N", &set.dry_penalty_last_n,
           "Tokens in which DRY looks for repetitions (default: -1, all of them)")
      .range(-1, 1e9)
      .needs(dry)
      .advanced();
  options
      .add("--samplers NAMES", &samplers_,
           "The samplers to use, in this order, separated by ;. docs/decoding-samplers.md lists "
           "them")
      .check([](const std::string& value) {
        const auto order = parse_sampler_order(sampler_names(value));
        return order.ok() ? std::string() : order.error().message;
      })
      .advanced();
}

SamplerChoices SamplerOptionsGroup::choices() const {
  SamplerChoices choices = choices_;
  if (!samplers_) return choices;
  // The option's check has parsed it before.
  if (auto order = parse_sampler_order(sampler_names(*samplers_)); order.ok())
    choices.order = *order;
  return choices;
}

}  // namespace hearth
