#include "engine/text/tool_calls/reply_style.h"

#include <algorithm>

#include "engine/text/tool_calls/tool_prompt.h"

namespace hearth {

std::vector<std::uint32_t> tokens_in_markers(const Tokenizer& tokenizer,
                                             std::span<const std::string_view> markers) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_control(id)) continue;
    const std::string text = tokenizer.piece(id, true);
    const auto has_it = [&](std::string_view marker) {
      return marker.find(text) != std::string_view::npos;
    };
    if (!text.empty() && std::ranges::any_of(markers, has_it)) ids.push_back(id);
  }
  return ids;
}

ReplyStyle find_reply_style(const Tokenizer& tokenizer, const ChatTemplate* chat,
                            const CallFormat* calls) {
  ReplyStyle style{.format = detect_reply_format(tokenizer.vocabulary().chat_template)};
  style.template_shows_tools = chat != nullptr && shows_tools(*chat);
  // A model that is told about tools by us writes calls as we ask it to.
  if (calls != nullptr)
    style.format.calls = calls;
  else if (!style.template_shows_tools && !style.format.always_parsed())
    style.format.calls = &generic_format();
  style.call_tokens = tokens_in_markers(tokenizer, style.format.markers(true));
  style.reasoning_tokens = tokens_in_markers(tokenizer, style.format.markers(false));
  for (const std::uint32_t id : style.call_tokens)
    if (!tokenizer.ends_generation(id))
      style.control_texts.push_back({.text = tokenizer.piece(id, true), .id = id});
  return style;
}

}  // namespace hearth
