// The controls of a conversation apart from its messages: system prompt, sampling, and a gauge of
// the context.
#pragma once

#include <cstdint>
#include <string>

#include "ui/data/chat.h"
#include "ui/data/chat_presets.h"
#include "ui/theme.h"

namespace hearth {

// Both return true if something was changed.
bool draw_system_prompt(Chat& chat, const Theme& theme);
// `defaults` are the model's, `context` its maximum in tokens (0: unknown).
bool draw_sampling(ChatSampling& sampling, const SamplingOptions& defaults, std::uint32_t context,
                   const Theme& theme);

// The model's presets: use, save and delete them. Returns true if the chat was changed; `saved` is
// set if the presets were. `name` is the one being typed.
bool draw_presets(Chat& chat, ChatPresets& presets, const std::string& model, std::string& name,
                  bool& saved, const Theme& theme);

struct ContextUse {
  std::uint32_t used = 0, context = 0;  // tokens; a context of 0: unknown
  std::uint32_t left_out = 0;           // messages dropped because the context was full
};
ContextUse context_use(const Chat& chat, std::uint32_t context);
// One line of this width.
void draw_context_gauge(const ContextUse& use, float width, const Theme& theme);

}  // namespace hearth
