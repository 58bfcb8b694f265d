// An answer while it is generated: from a conversation to a request, and from its stream of tokens
// to a reply. Nothing here waits. Of the window's thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/text/chat_template.h"
#include "engine/text/detokenizer.h"
#include "engine/text/tokenizer.h"
#include "runtime/result.h"
#include "tools/chat/conversation.h"
#include "ui/data/chat.h"

namespace hearth {

// What answers. Its pointers are good for this frame; `generation` tells it from others.
struct ChatModel {
  Engine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat = nullptr;
  std::uint32_t context = 0;  // tokens
  std::uint64_t generation = 0;
};

// The prompt that asks for the reply of this exchange, without what the reply has already. Oldest
// exchanges are left out where the context has no room; those without an answer always are.
Result<ChatPrompt> chat_prompt(const Chat& chat, size_t exchange, const ChatModel& model);
// What a token stands for, so that people can read it: "\n" for a new line, <E2> for half a
// character.
std::string readable_token(const Tokenizer& tokenizer, std::uint32_t id);
// Its given tokens' texts, and its own from them.
void rebuild_text(ChatReply& reply, const Tokenizer& tokenizer);
// Whether the tokens mean to this tokenizer what they meant when they were generated: a chat that
// was kept may be another model's.
bool matches_tokenizer(std::span<const ChatToken> tokens, const Tokenizer& tokenizer);

class ChatAnswer {
 public:
  // Asks for the reply of this exchange, which goes on after the tokens it has: all given ones.
  // `parent`: a running answer that begins with the same tokens but the last; its KV blocks are
  // shared.
  static Result<std::unique_ptr<ChatAnswer>> start(const ChatModel& model, Chat& chat,
                                                   size_t exchange,
                                                   const ChatAnswer* parent = nullptr);

  // Takes what has come. `model` is null, or another one, if the one that answers is gone: then the
  // reply ends with what is there. Returns true when there was something new.
  bool poll(ChatReply& reply, const ChatModel* model);
  bool ended() const { return ended_; }
  // It ends soon, by itself.
  void stop(const ChatModel& model);

  RequestId request() const { return stream_->request(); }
  // Seconds since it was asked for.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  ChatAnswer(const ChatModel& model, std::vector<TokenId> prompt, const ChatReply& reply,
             std::shared_ptr<TokenStream> stream);
  void add(ChatReply& reply, const GeneratedToken& token, const Tokenizer* tokenizer);
  void end(ChatReply& reply, bool model_closed);

  const std::uint64_t generation_;
  const std::vector<TokenId> prompt_;  // without the given tokens
  std::optional<Detokenizer> detokenizer_;
  std::shared_ptr<TokenStream> stream_;
  Clock::time_point asked_ = Clock::now(), first_ = {};
  bool ended_ = false;
};

}  // namespace hearth
