#include "engine/text/infill.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hearth {
namespace {

// Names of prefix, suffix and middle tokens, by family of models.
constexpr std::array<std::string_view, 3> kInfillNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},  // Qwen Coder, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},        // StarCoder
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},        // SantaCoder, Granite
    {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"},           // CodeLlama
    {"<PRE>", "<SUF>", "<MID>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>",
     "<\uff5cfim\u2581end\uff5c>"},  // DeepSeek
};

std::optional<std::uint32_t> token_named(const Vocabulary& vocabulary, std::string_view name) {
  const auto place = std::ranges::find(vocabulary.tokens, name, &VocabularyToken::text);
  if (place == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<std::uint32_t>(place - vocabulary.tokens.begin());
}

}  // namespace

std::optional<InfillTokens> find_infill_tokens(const Vocabulary& vocabulary) {
  if (vocabulary.infill_prefix && vocabulary.infill_suffix && vocabulary.infill_middle)
    return InfillTokens{*vocabulary.infill_prefix, *vocabulary.infill_suffix,
                        *vocabulary.infill_middle};
  for (const auto& names : kInfillNames) {
    const auto prefix = token_named(vocabulary, names[0]);
    const auto suffix = prefix ? token_named(vocabulary, names[1]) : std::nullopt;
    const auto middle = suffix ? token_named(vocabulary, names[2]) : std::nullopt;
    if (middle) return InfillTokens{*prefix, *suffix, *middle};
  }
  return std::nullopt;
}

std::vector<std::uint32_t> infill_prompt(const Tokenizer& tokenizer, const InfillTokens& infill,
                                         std::span<const std::uint32_t> before,
                                         std::string_view after) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<std::uint32_t> prompt;
  if (vocabulary.add_bos && vocabulary.bos) prompt.push_back(*vocabulary.bos);
  prompt.push_back(infill.prefix);
  prompt.insert(prompt.end(), before.begin(), before.end());
  prompt.push_back(infill.suffix);
  std::ranges::copy(tokenizer.encode(after, {.add_bos = false}), std::back_inserter(prompt));
  prompt.push_back(infill.middle);
  return prompt;
}

}  // namespace hearth
