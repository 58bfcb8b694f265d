#include "engine/text/encode_chat.h"

namespace hearth {

std::vector<std::uint32_t> encode_rendering(const Tokenizer& tokenizer,
                                            const jinja::Rendering& rendering,
                                            bool special_in_messages) {
  std::vector<ByteRange> messages;
  std::size_t begin = 0;
  for (const jinja::Run& run : rendering.runs) {
    if (run.origin == jinja::Origin::kInput && !special_in_messages)
      messages.push_back({begin, run.end});
    begin = run.end;
  }
  return tokenizer.encode(rendering.text, {.parse_special = true, .literal = messages});
}

Result<std::vector<std::uint32_t>> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                               std::span<const ChatMessage> messages,
                                               const ChatOptions& options) {
  HEARTH_ASSIGN(const jinja::Rendering rendering, chat.render(messages, options));
  return encode_rendering(tokenizer, rendering, chat.special_in_messages());
}

Result<std::vector<std::uint32_t>> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                               const nlohmann::ordered_json& messages,
                                               const ChatOptions& options) {
  HEARTH_ASSIGN(const jinja::Rendering rendering, chat.render(messages, options));
  return encode_rendering(tokenizer, rendering, chat.special_in_messages());
}

}  // namespace hearth
