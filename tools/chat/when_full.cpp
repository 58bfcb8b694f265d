#include "tools/chat/when_full.h"

#include <utility>
#include <vector>

#include "engine/prompt_compression.h"

namespace hearth {

WhenFull when_full(std::string_view name) {
  if (name == "compress") return WhenFull::kCompress;
  return name == "stop" ? WhenFull::kStop : WhenFull::kDrop;
}

Result<ShortenedConversation> shorten_conversation(Conversation& conversation, Engine& engine,
                                                   const Tokenizer& tokenizer) {
  std::vector<PromptText> texts;
  for (const ChatMessage& message : conversation.messages()) texts.push_back({message.content});
  if (!texts.empty()) texts.pop_back();  // the question
  if (texts.empty()) return ShortenedConversation{};
  HEARTH_ASSIGN(CompressedPrompt shorter,
                compress_prompt(engine, tokenizer, texts, {.ratio = 0.5, .min_tokens = 0}));
  conversation.shorten(std::move(shorter.texts));
  return ShortenedConversation{shorter.tokens_before, shorter.tokens_after};
}

}  // namespace hearth
