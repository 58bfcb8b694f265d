// The prompt of a chat without generating from it, for /apply-template and for counting tokens.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tools/server/api/exchange.h"
#include "tools/server/api/generate.h"
#include "tools/server/chat_prompt.h"

namespace hearth {

class ServerState;

// Renders the messages of a body for /v1/chat/completions with the model's template. Empty: the
// reply already says why it was not possible.
std::optional<ChatPrompt> render_chat(ServerState& server, Exchange& exchange,
                                      std::string_view body, std::span<const FieldName> names = {});

}  // namespace hearth
