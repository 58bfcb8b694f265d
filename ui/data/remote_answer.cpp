#include "ui/data/remote_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/data/chat_parts.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr const char* kChatPath = "/v1/chat/completions";
constexpr std::uint32_t kAskedAlternatives = 6;
// As in chat_answer.cpp: room for the answer, and the work of one frame.
constexpr std::uint32_t kRemoteRoomDivisor = 4, kMaxRemoteRoom = 512;
constexpr int kMaxChunksPerFrame = 512;
// The server separates reasoning from the answer. Between these, the panel finds it again.
constexpr std::string_view kReasoningBegin = "<think>", kReasoningEnd = "</think>";

// A member of an object; null if it is not there.
const json& json_member(const json& object, const char* name) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string json_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::uint32_t count_of(const json& value) {
  return value.is_number_unsigned() ? static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                          value.get<std::uint64_t>(), UINT32_MAX))
                                    : 0;
}

float probability_of(const json& entry) {
  const json& logprob = json_member(entry, "logprob");
  return logprob.is_number() ? std::exp(logprob.get<float>()) : 0;
}

// The bytes, because a token need not be whole characters.
std::string token_bytes(const json& entry) {
  const json& bytes = json_member(entry, "bytes");
  if (!bytes.is_array()) return json_text(json_member(entry, "token"));
  std::string text;
  for (const json& byte : bytes)
    if (byte.is_number_unsigned()) text += static_cast<char>(byte.get<std::uint64_t>() & 0xff);
  return text;
}

// The API has no ids, so the alternatives are counted, and the token is the one with its text.
ChatToken remote_token(const json& entry) {
  ChatToken token{.probability = probability_of(entry)};
  const std::string name = readable_text(token_bytes(entry));
  const json& top = json_member(entry, "top_logprobs");
  bool listed = false;
  if (top.is_array())
    for (const json& other : top) {
      const auto id = static_cast<std::uint32_t>(token.alternatives.size());
      token.alternatives.push_back({.id = id,
                                    .text = readable_text(token_bytes(other)),
                                    .probability = probability_of(other)});
      if (listed || token.alternatives.back().text != name) continue;
      listed = true;
      token.id = id;
    }
  if (!listed) {
    token.id = static_cast<std::uint32_t>(token.alternatives.size());
    token.alternatives.push_back({.id = token.id, .text = name, .probability = token.probability});
  }
  return token;
}

json assistant_json(const ChatReply& reply) {
  std::string reasoning;
  for (const ChatPart& part : parts_of(reply))
    if (part.kind == ChatPart::Kind::kReasoning)
      reasoning += reply.text.substr(part.begin, part.end - part.begin);
  json message = {{"role", "assistant"}, {"content", answer_text(reply)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  return message;
}

// The first exchange to send, so that the prompt leaves room for an answer.
size_t first_exchange(const Chat& chat, size_t exchange, std::uint32_t context) {
  if (exchange == 0 || context == 0) return 0;
  const std::uint32_t room = std::min(context / kRemoteRoomDivisor, kMaxRemoteRoom);
  std::uint32_t used = chat.exchanges[exchange - 1].reply.context_tokens(), dropped = 0;
  size_t first = 0;
  while (first < exchange && used - std::min(used, dropped) > context - room) {
    dropped = chat.exchanges[first].reply.context_tokens();
    ++first;
  }
  return first;
}

}  // namespace

json remote_chat_body(const Chat& chat, size_t exchange, uint32_t context, uint32_t& left_out) {
  json messages = json::array();
  if (!chat.system.empty()) messages.push_back({{"role", "system"}, {"content", chat.system}});
  const size_t first = first_exchange(chat, exchange, context);
  left_out = static_cast<uint32_t>(2 * first);
  for (size_t i = first; i < exchange; ++i) {
    if (chat.exchanges[i].reply.text.empty()) continue;
    messages.push_back({{"role", "user"}, {"content", chat.exchanges[i].question}});
    messages.push_back(assistant_json(chat.exchanges[i].reply));
  }
  messages.push_back({{"role", "user"}, {"content", chat.exchanges[exchange].question}});
  const ChatSampling& sampling = chat.sampling;
  json body = {{"messages", std::move(messages)},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"logprobs", true},
               {"top_logprobs", kAskedAlternatives},
               {"seed", sampling.options.seed}};
  if (sampling.max_tokens > 0) body["max_tokens"] = sampling.max_tokens;
  // Otherwise the server uses the model's own.
  if (sampling.custom) {
    body["temperature"] = sampling.options.temperature;
    body["top_k"] = sampling.options.top_k;
    body["top_p"] = sampling.options.top_p;
    body["min_p"] = sampling.options.min_p;
    body["repetition_penalty"] = sampling.options.repetition_penalty;
  }
  return body;
}

std::unique_ptr<RemoteAnswer> RemoteAnswer::start(const ChatModel& model, Chat& chat,
                                                  size_t exchange) {
  ChatReply& reply = chat.exchanges[exchange].reply;
  const json body = remote_chat_body(chat, exchange, model.context, reply.left_out);
  return std::unique_ptr<RemoteAnswer>(new RemoteAnswer(
      model.generation,
      model.remote->post(kChatPath, body.dump(-1, ' ', false, json::error_handler_t::replace))));
}

RemoteAnswer::~RemoteAnswer() {
  if (!ended_) call_->cancel();
}

double RemoteAnswer::seconds() const {
  return std::chrono::duration<double>(Clock::now() - asked_).count();
}

void RemoteAnswer::stop(const ChatModel&) {
  stopped_ = true;
  call_->cancel();
}

bool RemoteAnswer::poll(ChatReply& reply, const ChatModel* model) {
  if (ended_) return false;
  // In this order, so that nothing arrives in between.
  const bool done = call_->ended();
  for (std::string& data : call_->take_events()) events_.push_back(std::move(data));
  bool news = false;
  for (int i = 0; i < kMaxChunksPerFrame && !events_.empty(); ++i) {
    take_chunk(reply, events_.front());
    events_.pop_front();
    news = true;
  }
  const bool closed = model == nullptr || model->generation != generation_;
  if (!closed && !(done && events_.empty())) return news;
  if (!done) call_->cancel();
  stopped_ |= closed;
  end(reply);
  return true;
}

void RemoteAnswer::take_chunk(ChatReply& reply, const std::string& data) {
  if (data == "[DONE]") return;
  const json chunk = json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (const json& error = json_member(chunk, "error"); !error.is_null()) {
    reply.finish = FinishReason::kError;
    reply.error = json_text(json_member(error, "message"));
    return;
  }
  if (const json& usage = json_member(chunk, "usage"); usage.is_object()) {
    reply.prompt_tokens = count_of(json_member(usage, "prompt_tokens"));
    reply.cached_tokens =
        count_of(json_member(json_member(usage, "prompt_tokens_details"), "cached_tokens"));
  }
  const json& choices = json_member(chunk, "choices");
  if (!choices.is_array() || choices.empty()) return;
  add_text(reply, choices.front());
  const std::string finish = json_text(json_member(choices.front(), "finish_reason"));
  if (finish == "length")
    reply.finish = FinishReason::kLength;
  else if (finish == "error")
    reply.finish = FinishReason::kError;
  else if (!finish.empty())
    reply.finish = FinishReason::kStop;
}

// A chunk has some text and the tokens it is made of. Markers are tokens without text of their own,
// and a character may need several, so the texts are given to tokens as far as they agree.
void RemoteAnswer::add_text(ChatReply& reply, const json& choice) {
  const json& delta = json_member(choice, "delta");
  const std::string reasoning = json_text(json_member(delta, "reasoning_content"));
  const std::string content = json_text(json_member(delta, "content"));
  std::string text;
  if (!reasoning.empty()) {
    if (!std::exchange(reasons_, true)) text += kReasoningBegin;
    reply.form.reasoning = kReasoningBegin;
    text += reasoning;
  }
  if (!content.empty()) {
    if (std::exchange(reasons_, false)) text += kReasoningEnd;
    text += content;
  }
  const json& entries = json_member(json_member(choice, "logprobs"), "content");
  const size_t first = reply.tokens.size();
  std::string whole;
  std::vector<std::string> pieces;
  if (entries.is_array())
    for (const json& entry : entries) {
      reply.tokens.push_back(remote_token(entry));
      whole += pieces.emplace_back(token_bytes(entry));
    }
  reply.text += text;
  if (reply.tokens.size() > first) {
    const Clock::time_point now = Clock::now();
    if (first_ == Clock::time_point{}) {
      first_ = now;
      reply.first_token_seconds = seconds();
    } else if (now > first_) {
      reply.tokens_per_s =
          (reply.generated_tokens() - 1) / std::chrono::duration<double>(now - first_).count();
    }
  }
  if (whole == text) {
    for (size_t i = 0; i < pieces.size(); ++i) reply.tokens[first + i].text = std::move(pieces[i]);
  } else if (!text.empty()) {
    if (reply.tokens.empty()) reply.tokens.push_back({.probability = 1});
    reply.tokens.back().text += text;
  }
}

void RemoteAnswer::end(ChatReply& reply) {
  ended_ = true;
  if (stopped_ && reply.finish == FinishReason::kNone) {
    reply.finish = FinishReason::kCancelled;
    return;
  }
  if (reply.finish != FinishReason::kNone) return;
  reply.finish = FinishReason::kError;
  reply.error = call_->failure().empty() ? "the server ended the answer early" : call_->failure();
}

}  // namespace hearth
