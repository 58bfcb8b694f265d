#include "tools/server/compress_request.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace hearth {
namespace {

Status compress_together(const ServedModel& model, const CompressionOptions& options,
                         const ScoreUntil& until, std::vector<std::string*> texts,
                         CompressionReport& report) {
  std::vector<PromptText> prompt;
  for (const std::string* text : texts) prompt.push_back({.text = *text});
  if (prompt.empty()) return {};
  prompt.back().question = PromptQuestion::kAtEnd;
  HEARTH_ASSIGN(CompressedPrompt compressed,
                compress_prompt(model.engine, model.tokenizer, prompt, options, until));
  for (size_t i = 0; i < texts.size(); ++i) *texts[i] = std::move(compressed.texts[i]);
  report.tokens_before += compressed.tokens_before;
  report.tokens_after += compressed.tokens_after;
  report.scoring_seconds += compressed.scoring_seconds;
  if (compressed.tokens_before > compressed.tokens_after)
    report.seconds_saved_estimate += compressed.scoring_seconds *
                                     (compressed.tokens_before - compressed.tokens_after) /
                                     compressed.tokens_before;
  return {};
}

}  // namespace

nlohmann::json compression_json(const CompressionReport& report) {
  return {{"tokens_before", report.tokens_before},
          {"tokens_after", report.tokens_after},
          {"scoring_seconds", report.scoring_seconds},
          {"seconds_saved_estimate", report.seconds_saved_estimate}};
}

Result<CompressionReport> compress_request(const ServedModel& model, ApiRequest& request,
                                           const ScoreUntil& until) {
  CompressionReport report;
  std::vector<std::string*> messages;
  for (ChatMessage& message : request.messages)
    if (message.role != "system" && !message.content.empty()) messages.push_back(&message.content);
  HEARTH_TRY(compress_together(model, *request.compress, until, messages, report));
  // Prompts have nothing to do with each other.
  for (ApiRequest::Prompt& prompt : request.prompts)
    if (std::string* text = std::get_if<std::string>(&prompt))
      HEARTH_TRY(compress_together(model, *request.compress, until, {text}, report));
  return report;
}

}  // namespace hearth
