// An answer being generated: builds the request from a conversation and turns the token stream into
// a reply. Never blocks. Call only from the window's thread.
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
#include "engine/text/tool_calls/reply_style.h"
#include "runtime/result.h"
#include "tools/chat/conversation.h"
#include "ui/data/chat.h"

namespace hearth {

class RemoteCalls;

// The model that answers: one in this process, or that of a server. The pointers are valid for this frame only; `generation` identifies the
// engine.
struct ChatModel {
  Engine* engine = nullptr;  // null if a server answers, and so are tokenizer, chat and style
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat = nullptr;
  const ReplyStyle* style = nullptr;  // null: answers have neither reasoning nor calls
  std::uint32_t context = 0;          // tokens
  SamplingOptions default_sampling = kHearthSampling;
  std::uint64_t generation = 0;
  RemoteCalls* remote = nullptr;  // to the server; null: the engine answers

  // Control tokens whose text is part of an answer.
  std::span<const std::uint32_t> shown_tokens() const {
    return style == nullptr ? std::span<const std::uint32_t>() : style->shown_tokens(true);
  }
};

// The prompt for the reply of an exchange, without the reply's own tokens. Exchanges without an
// answer are skipped, and the oldest ones are dropped if the context is too small.
Result<FittedPrompt> chat_prompt(const Chat& chat, size_t exchange, const ChatModel& model);
// A token's text in readable form: "\n" for a line feed, <E2> for a byte of an incomplete
// character.
std::string readable_text(std::string_view piece);
std::string readable_token(const Tokenizer& tokenizer, std::uint32_t id);
// Recomputes the text of every token and of the whole reply from the token ids.
void rebuild_text(ChatReply& reply, const ChatModel& model);
// Whether this model decodes the tokens to the same text as when they were generated. False
// means that the saved chat came from a different model.
bool decodes_equally(std::span<const ChatToken> tokens, const ChatModel& model);

// An answer in progress, wherever it is generated.
class Answer {
 public:
  virtual ~Answer() = default;
  // Moves what has arrived into the reply and returns true if anything is new. If `model` is null
  // or a different one, the answering model was closed and the reply ends as it is.
  virtual bool poll(ChatReply& reply, const ChatModel* model) = 0;
  virtual bool ended() const = 0;
  // Cancels the request; the answer ends within a few frames.
  virtual void stop(const ChatModel& model) = 0;
  virtual RequestId request() const = 0;  // 0: not known
  // Seconds since the request was submitted.
  virtual double seconds() const = 0;
};

class ChatAnswer final : public Answer {
 public:
  // Submits the request for the reply of an exchange. The reply's existing tokens are kept and
  // continued. `parent` is a running answer with the same tokens except for the last one, whose KV
  // blocks are shared.
  static Result<std::unique_ptr<ChatAnswer>> start(const ChatModel& model, Chat& chat,
                                                   size_t exchange,
                                                   const ChatAnswer* parent = nullptr);

  bool poll(ChatReply& reply, const ChatModel* model) override;
  bool ended() const override { return ended_; }
  void stop(const ChatModel& model) override;
  RequestId request() const override { return stream_.request(); }
  double seconds() const override;

 private:
  using Clock = std::chrono::steady_clock;

  ChatAnswer(const ChatModel& model, std::vector<TokenId> prompt, const ChatReply& reply,
             TokenStream stream);
  void add(ChatReply& reply, const GeneratedToken& token, const Tokenizer* tokenizer);
  void end(ChatReply& reply, bool model_closed);

  const std::uint64_t generation_;
  const std::vector<TokenId> prompt_;  // without the reply's kept tokens
  const std::vector<TokenId> shown_tokens_;
  std::optional<Detokenizer> detokenizer_;
  TokenStream stream_;
  Clock::time_point asked_ = Clock::now(), first_ = {};
  bool ended_ = false;
};

}  // namespace hearth
