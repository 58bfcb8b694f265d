// The alternatives at one token of an answer: their colours, and the rows of a tooltip or a popup.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <imgui.h>

#include "ui/data/chat.h"
#include "ui/theme.h"

namespace hearth {

// The background of a token: the less likely it is, the stronger the colour.
ImU32 token_color(const Theme& theme, float probability);
// The token's text in readable form.
std::string token_name(const ChatToken& token);
std::string quoted(const std::string& text);
// Draws one row per alternative and returns the index of the clicked one.
std::optional<size_t> draw_alternatives(const Theme& theme, const ChatToken& token, bool buttons,
                                        bool enabled);
// What the mouse shows at a token, together with preceding ones that are parts of the same
// character.
void draw_token_tooltip(const Theme& theme, const ChatReply& reply, size_t token, bool can_branch);

}  // namespace hearth
