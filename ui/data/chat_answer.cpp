#include "ui/data/chat_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "ui/data/chat_parts.h"

namespace hearth {
namespace {

constexpr std::uint32_t kAlternatives = 6;
static_assert(kAlternatives <= kMaxTopLogprobs);
// As in `hearth chat`: a quarter of the context is left for the answer, but no more than this.
constexpr std::uint32_t kAnswerRoomDivisor = 4, kMaxAnswerRoom = 512;
// Bounds the work per frame; the rest waits for the next one.
constexpr int kMaxTokensPerFrame = 512;
// More than the marker of reasoning has.
constexpr size_t kPromptEndTokens = 16;

// The length in bytes of the UTF-8 character at the front; 0 if it is invalid or incomplete.
size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return length;
}

std::string end_of_prompt(const Tokenizer& tokenizer, std::span<const TokenId> prompt) {
  std::string text;
  for (const TokenId id : prompt.last(std::min(prompt.size(), kPromptEndTokens)))
    text += tokenizer.piece(id, /*special=*/true);
  return text;
}

// An earlier answer as the template gets it, which decides whether the model sees its reasoning
// again. Calls stay as the model wrote them: many templates refuse one without a result.
ChatMessage assistant_message(const ChatReply& reply) {
  ChatMessage message{"assistant", reply.text};
  std::string reasoning;
  for (const ChatPart& part : parts_of(reply)) {
    if (part.kind == ChatPart::Kind::kCall) return message;
    if (part.kind == ChatPart::Kind::kReasoning)
      reasoning += reply.text.substr(part.begin, part.end - part.begin);
  }
  if (reasoning.empty()) return message;
  message.content = answer_text(reply);
  message.reasoning = std::move(reasoning);
  return message;
}

}  // namespace

std::string readable_token(const Tokenizer& tokenizer, std::uint32_t id) {
  return readable_text(tokenizer.piece(id, /*special=*/true));
}

std::string readable_text(std::string_view rest) {
  std::string text;
  while (!rest.empty()) {
    const auto byte = static_cast<unsigned char>(rest.front());
    const size_t length = character_length(rest);
    if (byte == '\n')
      text += "\\n";
    else if (byte == '\t')
      text += "\\t";
    else if (length == 0 || byte < ' ')
      text += fmt::format("<{:02X}>", byte);
    else
      text += rest.substr(0, length);
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

void rebuild_text(ChatReply& reply, const ChatModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  Detokenizer detokenizer(tokenizer, true, false, model.shown_tokens());
  reply.text.clear();
  for (ChatToken& token : reply.tokens) {
    token.text = tokenizer.ends_generation(token.id) ? std::string() : detokenizer.push(token.id);
    reply.text += token.text;
  }
}

bool decodes_equally(std::span<const ChatToken> tokens, const ChatModel& model) {
  ChatReply decoded;
  decoded.tokens.assign(tokens.begin(), tokens.end());
  rebuild_text(decoded, model);
  return std::ranges::equal(tokens, decoded.tokens, {}, &ChatToken::text, &ChatToken::text);
}

Result<FittedPrompt> chat_prompt(const Chat& chat, size_t exchange, const ChatModel& model) {
  Conversation conversation;
  conversation.set_system(chat.system);
  for (size_t i = 0; i < exchange; ++i) {
    if (chat.exchanges[i].reply.text.empty()) continue;
    conversation.add_user(chat.exchanges[i].question);
    conversation.add(assistant_message(chat.exchanges[i].reply));
  }
  conversation.add_user(chat.exchanges[exchange].question);
  return conversation.prompt(*model.chat, *model.tokenizer, model.context,
                             std::min(model.context / kAnswerRoomDivisor, kMaxAnswerRoom));
}

Result<std::unique_ptr<ChatAnswer>> ChatAnswer::start(const ChatModel& model, Chat& chat,
                                                      size_t exchange, const ChatAnswer* parent) {
  ChatReply& reply = chat.exchanges[exchange].reply;
  std::vector<TokenId> prompt;
  if (parent != nullptr) {
    prompt = parent->prompt_;
  } else {
    HEARTH_ASSIGN(FittedPrompt built, chat_prompt(chat, exchange, model));
    prompt = std::move(built.ids);
    reply.left_out = static_cast<std::uint32_t>(built.left_out);
  }
  GenerationRequest request{
      .prompt = prompt, .sampling = chat.sampling.options, .max_tokens = chat.sampling.max_tokens};
  request.sampling.top_logprobs = kAlternatives;
  request.shown_tokens.assign(model.shown_tokens().begin(), model.shown_tokens().end());
  if (model.style != nullptr)
    reply.form = reply_form(*model.style, end_of_prompt(*model.tokenizer, prompt));
  for (const ChatToken& token : reply.tokens) request.prompt.push_back(token.id);
  reply.kept_tokens = static_cast<std::uint32_t>(reply.tokens.size());
  reply.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
  if (parent != nullptr)
    request.fork =
        GenerationRequest::Fork{.parent = parent->request(), .tokens = reply.prompt_tokens - 1};
  HEARTH_ASSIGN(TokenStream stream, model.engine->submit(std::move(request)));
  return std::unique_ptr<ChatAnswer>(
      new ChatAnswer(model, std::move(prompt), reply, std::move(stream)));
}

ChatAnswer::ChatAnswer(const ChatModel& model, std::vector<TokenId> prompt, const ChatReply& reply,
                       TokenStream stream)
    : generation_(model.generation),
      prompt_(std::move(prompt)),
      shown_tokens_(model.shown_tokens().begin(), model.shown_tokens().end()),
      stream_(std::move(stream)) {
  // The engine's own detokenizer starts with the request. This one has seen the kept tokens, which
  // may end in the middle of a character.
  detokenizer_.emplace(*model.tokenizer, true, false, shown_tokens_);
  for (const ChatToken& token : reply.tokens) detokenizer_->push(token.id);
}

double ChatAnswer::seconds() const {
  return std::chrono::duration<double>(Clock::now() - asked_).count();
}

void ChatAnswer::stop(const ChatModel& model) {
  if (model.generation == generation_) model.engine->cancel(request());
}

bool ChatAnswer::poll(ChatReply& reply, const ChatModel* model) {
  if (ended_) return false;
  const bool model_closed = model == nullptr || model->generation != generation_;
  bool news = false;
  for (int i = 0; i < kMaxTokensPerFrame || model_closed; ++i) {
    const auto token = stream_.next(std::chrono::nanoseconds(0));
    if (!token) break;
    add(reply, *token, model_closed ? nullptr : model->tokenizer);
    news = true;
  }
  if (model_closed || stream_.ended()) {
    end(reply, model_closed);
    news = true;
  }
  return news;
}

void ChatAnswer::add(ChatReply& reply, const GeneratedToken& token, const Tokenizer* tokenizer) {
  const Clock::time_point now = Clock::now();
  ChatToken& added = reply.tokens.emplace_back();
  added.id = token.id;
  added.probability = std::exp(token.logprob);
  added.text = token.text;
  if (tokenizer != nullptr) {
    added.text =
        tokenizer->ends_generation(token.id) ? std::string() : detokenizer_->push(token.id);
    for (const TopLogprob& other : token.top)
      added.alternatives.push_back({.id = other.id,
                                    .text = readable_token(*tokenizer, other.id),
                                    .probability = std::exp(other.logprob)});
    const bool listed = std::ranges::any_of(
        added.alternatives, [&](const ChatAlternative& one) { return one.id == token.id; });
    if (!listed)
      added.alternatives.push_back({.id = token.id,
                                    .text = readable_token(*tokenizer, token.id),
                                    .probability = added.probability});
  }
  reply.text += added.text;
  // Estimates, until the engine reports the exact times at the end.
  if (first_ == Clock::time_point{}) {
    first_ = now;
    reply.first_token_seconds = std::chrono::duration<double>(now - asked_).count();
  } else if (now > first_) {
    reply.tokens_per_s =
        (reply.generated_tokens() - 1) / std::chrono::duration<double>(now - first_).count();
  }
}

void ChatAnswer::end(ChatReply& reply, bool model_closed) {
  ended_ = true;
  if (!stream_.ended()) {
    reply.finish = FinishReason::kCancelled;
    return;
  }
  const GenerationEnd& end = stream_.end();
  reply.text += model_closed ? end.text : detokenizer_->finish();
  reply.finish = end.reason;
  reply.error = end.message;
  reply.cached_tokens = end.cached_tokens;
  if (end.generated_tokens == 0) return;
  reply.first_token_seconds = end.times.first_token;
  const double seconds = end.times.last_token - end.times.first_token;
  reply.tokens_per_s = seconds > 0 ? (end.generated_tokens - 1) / seconds : 0;
}

}  // namespace hearth
