// A conversation to token ids. The one place where front ends encode what a chat template renders,
// because it must not treat all of that text alike: control tokens are read in the template's own
// text, and in messages only if the ChatTemplate was created so. Pure functions: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace hearth {

// Fails as ChatTemplate::render() does.
Result<std::vector<std::uint32_t>> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                               std::span<const ChatMessage> messages,
                                               const ChatOptions& options = {});
Result<std::vector<std::uint32_t>> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                               const nlohmann::ordered_json& messages,
                                               const ChatOptions& options = {});
// For callers that need the rendering as well.
std::vector<std::uint32_t> encode_rendering(const Tokenizer& tokenizer,
                                            const jinja::Rendering& rendering,
                                            bool special_in_messages = false);

}  // namespace hearth
