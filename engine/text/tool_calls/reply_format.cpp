#include "engine/text/tool_calls/reply_format.h"

#include <algorithm>

namespace hearth {

std::span<const CallFormat* const> call_formats() {
  static const CallFormat* const formats[] = {
      &harmony_format(),  &gemma_format(),   &glm_format(),          &qwen_coder_format(),
      &deepseek_format(), &mistral_format(), &mistral_list_format(), &phi_format(),
      &hermes_format(),   &llama3_format(),  &generic_format()};
  return formats;
}

const CallFormat* find_call_format(std::string_view name) {
  const auto formats = call_formats();
  const auto place = std::ranges::find(formats, name, &CallFormat::name);
  return place == formats.end() ? nullptr : *place;
}

ReplyFormat detect_reply_format(std::string_view chat_template) {
  const auto place = std::ranges::find_if(
      call_formats(), [&](const CallFormat* format) { return format->fits(chat_template); });
  return {.calls = *place, .reasoning = find_reasoning(chat_template)};
}

std::vector<std::string_view> ReplyFormat::markers(bool with_calls) const {
  std::vector<std::string_view> texts;
  if (with_calls || always_parsed()) texts = calls->markers;
  if (reasoning != nullptr) {
    texts.push_back(reasoning->open);
    texts.push_back(reasoning->close);
  }
  return texts;
}

}  // namespace hearth
