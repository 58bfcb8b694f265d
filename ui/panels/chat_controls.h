// What belongs to a conversation beside its messages: system prompt, sampling, how full the
// context is.
#pragma once

#include <cstdint>
#include <string>

#include "ui/data/chat.h"
#include "ui/theme.h"

namespace hearth {

// Each true when something was changed.
bool draw_system_prompt(Chat& chat, const Theme& theme);
bool draw_sampling(ChatSampling& sampling, std::uint32_t context, const Theme& theme);

struct ContextUse {
  std::uint32_t used = 0, context = 0;  // tokens; a context of 0: not known
  std::uint32_t left_out = 0;           // messages
};
ContextUse context_use(const Chat& chat, std::uint32_t context);
// On one line, `width` wide.
void draw_context_gauge(const ContextUse& use, float width, const Theme& theme);

}  // namespace hearth
