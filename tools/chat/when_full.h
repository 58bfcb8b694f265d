// What a chat does when the conversation no longer fits the context.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/text/tokenizer.h"
#include "tools/chat/conversation.h"

namespace hearth {

enum class WhenFull {
  kDrop,      // the oldest messages are left out of the prompt
  kCompress,  // all messages but the last question are shortened first
  kStop,      // the question is not answered
};
// "drop", "compress" or "stop". REQUIRES: one of them.
WhenFull when_full(std::string_view name);

struct ShortenedConversation {
  uint32_t tokens_before = 0, tokens_after = 0;  // of the messages before the last question
};
// Halves the messages before the last question, as engine/prompt_compression.h does it.
Result<ShortenedConversation> shorten_conversation(Conversation& conversation, Engine& engine,
                                                   const Tokenizer& tokenizer);

}  // namespace hearth
