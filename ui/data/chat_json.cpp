// Conversations as JSON. To keep files small, a token is an array:
// [id, text, probability, [[id, text, probability], ...]].
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "ui/data/chat.h"

namespace hearth {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

// Six decimals are precise enough and keep the file small.
double rounded(float probability) { return std::round(double{probability} * 1e6) / 1e6; }
double rounded(double value, double unit) { return std::round(value / unit) * unit; }

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

FinishReason finish_of(std::string_view name) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled,
        FinishReason::kTimeLimit, FinishReason::kError})
    if (finish_reason_name(reason) == name) return reason;
  return FinishReason::kNone;
}

Json write_tokens(const std::vector<ChatToken>& tokens) {
  Json list = Json::array();
  for (const ChatToken& token : tokens) {
    Json alternatives = Json::array();
    for (const ChatAlternative& one : token.alternatives)
      alternatives.push_back(Json::array({one.id, one.text, rounded(one.probability)}));
    list.push_back(
        Json::array({token.id, token.text, rounded(token.probability), std::move(alternatives)}));
  }
  return list;
}

std::vector<ChatToken> read_tokens(const Json& list) {
  std::vector<ChatToken> tokens;
  for (const Json& one : list) {
    ChatToken token{.id = one.at(0).get<std::uint32_t>(),
                    .text = one.at(1).get<std::string>(),
                    .probability = one.at(2).get<float>(),
                    .alternatives = {}};
    for (const Json& other : one.at(3))
      token.alternatives.push_back({.id = other.at(0).get<std::uint32_t>(),
                                    .text = other.at(1).get<std::string>(),
                                    .probability = other.at(2).get<float>()});
    tokens.push_back(std::move(token));
  }
  return tokens;
}

std::string write_exchange(const ChatExchange& exchange) {
  const ChatReply& reply = exchange.reply;
  const Json question = {{"role", "user"}, {"content", exchange.question}};
  Json answer = {{"role", "assistant"},
                 {"content", reply.text},
                 {"finish", finish_reason_name(reply.finish)},
                 {"given_tokens", reply.kept_tokens},
                 {"first_token_seconds", rounded(reply.first_token_seconds, 1e-6)},
                 {"tokens_per_s", rounded(reply.tokens_per_s, 1e-3)},
                 {"prompt_tokens", reply.prompt_tokens},
                 {"cached_tokens", reply.cached_tokens},
                 {"left_out", reply.left_out},
                 {"tokens", write_tokens(reply.tokens)}};
  if (!reply.error.empty()) answer["error"] = reply.error;
  if (!reply.form.calls.empty())
    answer["form"] = {{"calls", reply.form.calls},
                      {"reasoning", reply.form.reasoning},
                      {"begins_in_reasoning", reply.form.begins_in_reasoning}};
  return dump(question) + ",\n" + dump(answer);
}

ChatExchange read_exchange(const Json& question, const Json& answer) {
  ChatExchange exchange;
  exchange.question = question.at("content").get<std::string>();
  ChatReply& reply = exchange.reply;
  reply.text = answer.at("content").get<std::string>();
  reply.finish = finish_of(answer.value("finish", std::string("stop")));
  reply.error = answer.value("error", std::string());
  reply.first_token_seconds = answer.value("first_token_seconds", 0.0);
  reply.tokens_per_s = answer.value("tokens_per_s", 0.0);
  reply.prompt_tokens = answer.value("prompt_tokens", 0u);
  reply.cached_tokens = answer.value("cached_tokens", 0u);
  reply.left_out = answer.value("left_out", 0u);
  const Json form = answer.value("form", Json::object());
  reply.form = {.calls = form.value("calls", std::string()),
                .reasoning = form.value("reasoning", std::string()),
                .begins_in_reasoning = form.value("begins_in_reasoning", false)};
  reply.tokens = read_tokens(answer.value("tokens", Json::array()));
  reply.kept_tokens =
      std::min(answer.value("given_tokens", 0u), static_cast<std::uint32_t>(reply.tokens.size()));
  return exchange;
}

Json write_sampling(const ChatSampling& sampling) {
  const SamplingOptions& options = sampling.options;
  return {{"temperature", rounded(options.temperature)},
          {"top_k", options.top_k},
          {"top_p", rounded(options.top_p)},
          {"min_p", rounded(options.min_p)},
          {"repetition_penalty", rounded(options.repetition_penalty)},
          {"custom", sampling.custom},
          {"seed", options.seed},
          {"new_seed", sampling.new_seed},
          {"max_tokens", sampling.max_tokens}};
}

ChatSampling read_sampling(const Json& json) {
  ChatSampling sampling;
  SamplingOptions& options = sampling.options;
  options.temperature = json.value("temperature", options.temperature);
  options.top_k = json.value("top_k", options.top_k);
  options.top_p = json.value("top_p", options.top_p);
  options.min_p = json.value("min_p", options.min_p);
  options.repetition_penalty = json.value("repetition_penalty", options.repetition_penalty);
  options.seed = json.value("seed", options.seed);
  // Files from before this key was written contain the options that were used.
  sampling.custom = json.value("custom", json.contains("temperature"));
  sampling.new_seed = json.value("new_seed", sampling.new_seed);
  sampling.max_tokens = json.value("max_tokens", sampling.max_tokens);
  return sampling;
}

Chat read_all(const Json& all) {
  Chat chat;
  chat.title = all.value("title", std::string());
  chat.titled = all.value("titled", !chat.title.empty());
  chat.open = all.value("open", true);
  chat.system = all.value("system", std::string());
  chat.draft = all.value("draft", std::string());
  chat.sampling = read_sampling(all.value("sampling", Json::object()));
  const Json& messages = all.at("messages");
  for (size_t i = 0; i + 1 < messages.size(); i += 2)
    chat.exchanges.push_back(read_exchange(messages.at(i), messages.at(i + 1)));
  return chat;
}

}  // namespace

std::string write_chat(const Chat& chat) {
  const Json head = {{"format", kFormat},
                     {"title", chat.title},
                     {"titled", chat.titled},
                     {"open", chat.open},
                     {"system", chat.system},
                     {"draft", chat.draft},
                     {"sampling", write_sampling(chat.sampling)}};
  std::string text = dump(head);
  text.pop_back();
  text += ",\"messages\":[";
  const char* separator = "\n";
  for (const ChatExchange& exchange : chat.exchanges) {
    text += separator;
    separator = ",\n";
    if (!exchange.json.empty()) {
      text += exchange.json;
      continue;
    }
    std::string json = write_exchange(exchange);
    text += json;
    if (exchange.reply.finish != FinishReason::kNone) exchange.json = std::move(json);
  }
  return text + "\n]}\n";
}

Result<Chat> read_chat(std::string_view text) {
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return Error{ErrorKind::kInvalid, "not valid JSON"};
  try {
    return read_all(all);
  } catch (const Json::exception& error) {
    return Error{ErrorKind::kInvalid, fmt::format("not a conversation: {}", error.what())};
  }
}

}  // namespace hearth
