#include "tools/commands/decoding_options.h"

#include <fmt/format.h>

namespace hearth {
namespace {

// What contrastive search replaces, or cannot be combined with. Not every command has all of them.
constexpr const char* kNotWithContrastiveSearch[] = {"--temp",
                                                     "--top-p",
                                                     "--min-p",
                                                     "--typical",
                                                     "--top-nsigma",
                                                     "--top-a",
                                                     "--epsilon-cutoff",
                                                     "--eta-cutoff",
                                                     "--xtc-probability",
                                                     "--dynatemp-range",
                                                     "--smoothing-factor",
                                                     "--mirostat",
                                                     "--samplers",
                                                     "--ban",
                                                     "--amateur",
                                                     "--speculate",
                                                     "--json-schema",
                                                     "--grammar",
                                                     "--regex"};

}  // namespace

void DecodingOptionsGroup::declare(Options& options) {
  options.group("Contrastive search and guidance");
  Option& search = options
                       .add("--penalty-alpha A", &choices_.penalty_alpha,
                            "Contrastive search: of the --top-k most likely tokens, take one that "
                            "is likely and unlike the text so far; A weighs being unlike")
                       .range(0, 1)
                       .idle_at(0)
                       .needs(options.at("--top-k"))
                       .advanced();
  for (const char* name : kNotWithContrastiveSearch)
    if (options.has(name)) search.excludes(options.at(name));
  Option& guidance = options
                         .add("--guidance SCALE", &choices_.guidance_scale,
                              "Steer away from the negative prompt: above 1, tokens that it makes "
                              "likely become less likely; 1 does nothing")
                         .alias("--cfg-scale")
                         .range(0, 100)
                         .idle_at(1)
                         .excludes(options.at("--amateur"))
                         .excludes(search)
                         .advanced();
  // Nothing is guessed for a request with one of these.
  for (const char* name : {"--guidance", "--ban", "--mirostat"})
    options.at(name).excludes(options.at("--speculate"));
  options
      .add("--negative-prompt TEXT", &choices_.negative_prompt,
           "With --guidance: the text to steer away from; without it, the last token of the prompt")
      .alias("--cfg-negative-prompt")
      .needs(guidance)
      .advanced();
}

std::string DecodingOptionsGroup::problem(std::optional<uint32_t> top_k) const {
  const uint32_t candidates = top_k.value_or(0);
  const bool fits = candidates >= 2 && candidates <= kMaxTopLogprobs;
  if (choices_.penalty_alpha == 0 || fits) return {};
  return fmt::format("--penalty-alpha: needs --top-k between 2 and {}, not {}", kMaxTopLogprobs,
                     candidates);
}

}  // namespace hearth
