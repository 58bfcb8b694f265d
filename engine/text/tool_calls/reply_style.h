// How one model's replies are to be read: found once per model. Immutable; any thread may use it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "engine/text/tool_calls/reply_format.h"

namespace hearth {

struct ReplyStyle {
  ReplyFormat format;
  bool template_shows_tools = false;  // otherwise tool_prompt.h does
  // Control tokens whose text the format needs, sorted: with calls, and without.
  std::vector<std::uint32_t> call_tokens, reasoning_tokens;
  // Those of call_tokens that grammars of calls name; all but the ones that end a reply.
  std::vector<ControlText> control_texts;

  std::span<const std::uint32_t> shown_tokens(bool with_calls) const {
    return with_calls ? call_tokens : reasoning_tokens;
  }
};

// Of a model whose tokenizer has its template's text. `chat` may be null. `calls`: the format of
// calls; null: what the template says.
ReplyStyle find_reply_style(const Tokenizer& tokenizer, const ChatTemplate* chat,
                            const CallFormat* calls = nullptr);

// The control tokens that are part of one of the texts, sorted.
std::vector<std::uint32_t> tokens_in_markers(const Tokenizer& tokenizer,
                                             std::span<const std::string_view> markers);

}  // namespace hearth
