#include "engine/prompt_compression.h"

#include <chrono>

namespace hearth {
namespace {

uint32_t tokens_of(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  size_t tokens = 0;
  for (const std::string& text : texts) tokens += tokenizer.encode(text, {.add_bos = false}).size();
  return static_cast<uint32_t>(tokens);
}

size_t question_begin(std::string_view text, PromptQuestion question) {
  switch (question) {
    case PromptQuestion::kNone:
      return text.size();
    case PromptQuestion::kAtEnd:
      return find_question(text);
    case PromptQuestion::kAll:
      return 0;
  }
  return text.size();
}

}  // namespace

Result<CompressedPrompt> compress_prompt(Engine& engine, const Tokenizer& tokenizer,
                                         std::span<const PromptText> texts,
                                         const CompressionOptions& options,
                                         const ScoreUntil& until) {
  for (const double ratio : {options.ratio, options.question_ratio})
    if (!is_compression_ratio(ratio)) return invalid(wrong_ratio(ratio));
  CompressedPrompt prompt;
  for (const PromptText& text : texts) prompt.texts.push_back(text.text);
  prompt.tokens_before = prompt.tokens_after = tokens_of(tokenizer, prompt.texts);
  const bool keeps_all = options.ratio >= 1 && options.question_ratio >= 1;
  if (keeps_all || prompt.tokens_before < options.min_tokens) return prompt;

  const auto began = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const std::vector<ScoredText> scored,
                score_texts(engine, tokenizer, prompt.texts, until));
  for (size_t i = 0; i < texts.size(); ++i) {
    const ScoredText& one = scored[i];
    const size_t question = question_begin(one.text, texts[i].question);
    const CompressPart parts[] = {
        {.begin = 0, .end = question, .ratio = options.ratio},
        {.begin = question, .end = one.text.size(), .ratio = options.question_ratio}};
    prompt.texts[i].clear();
    for (const CompressedPart& part : compress_parts(one.text, one.tokens, parts, options.unit))
      prompt.texts[i] += part.text;
  }
  prompt.scoring_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  prompt.tokens_after = tokens_of(tokenizer, prompt.texts);
  return prompt;
}

}  // namespace hearth
