// The format of a model's replies: how it writes calls, and how it marks its reasoning. Both are
// found in its chat template. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/reasoning.h"

namespace hearth {

struct ReplyFormat {
  const CallFormat* calls = &generic_format();
  const ReasoningMarkers* reasoning = nullptr;  // null: none is marked

  // The whole reply is in the format, even without calls: harmony.
  bool always_parsed() const { return calls == &harmony_format(); }
  // The texts of the format, some of which may be control tokens.
  std::vector<std::string_view> markers(bool with_calls) const;
};

// In the order in which a template is compared with them: those with more particular texts first.
std::span<const CallFormat* const> call_formats();
// Null if there is none of this name.
const CallFormat* find_call_format(std::string_view name);

ReplyFormat detect_reply_format(std::string_view chat_template);

}  // namespace hearth
