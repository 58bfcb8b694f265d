#include "tools/server/api/ollama_reply.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "tools/server/api/error_shape.h"
#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

using nlohmann::json;

std::string to_line(const json& object) { return to_text(object) + "\n"; }

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

}  // namespace

std::string ollama_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())), rest.count());
}

json OllamaReply::part(const std::string& text, const std::string& thinking) const {
  json object = {{"model", model_}, {"created_at", ollama_time()}, {"done", false}};
  json& place = call_ == OllamaCall::kChat ? object["message"] : object;
  if (call_ == OllamaCall::kChat) place = {{"role", "assistant"}};
  place[call_ == OllamaCall::kChat ? "content" : "response"] = text;
  if (!thinking.empty()) place["thinking"] = thinking;
  return object;
}

json OllamaReply::last(const std::string& text, const std::string& thinking) const {
  const GenerationEnd& end = ending();
  json object = part(text, thinking);
  object["done"] = true;
  object["done_reason"] = finish_reason() == "length" ? "length" : "stop";
  object["total_duration"] = nanoseconds(end.times.finished);
  object["load_duration"] = 0;
  object["prompt_eval_count"] = end.prompt_tokens;
  // Clients divide by these, and forced tokens may come at once.
  object["prompt_eval_duration"] =
      std::max<int64_t>(nanoseconds(end.times.first_token - end.times.admitted), 1);
  object["eval_count"] = end.generated_tokens;
  object["eval_duration"] =
      std::max<int64_t>(nanoseconds(end.times.last_token - end.times.first_token), 1);
  return object;
}

json OllamaReply::loaded(OllamaCall call, const std::string& model) {
  json object = OllamaReply(call, model).part("", "");
  object["done"] = true;
  object["done_reason"] = "load";
  return object;
}

// Calls are sent whole.
std::string OllamaReply::close_call() {
  if (!std::exchange(call_open_, false)) return {};
  json arguments = json::parse(arguments_.empty() ? "{}" : arguments_, nullptr,
                               /*allow_exceptions=*/false);
  // Without constraints a model may write anything; clients expect an object.
  if (!arguments.is_object()) arguments = {{"arguments", arguments_}};
  const json call = {{"function", {{"name", call_name_}, {"arguments", std::move(arguments)}}}};
  calls_.push_back(call);
  json object = part("", "");
  object["message"]["tool_calls"] = json::array({call});
  return to_line(object);
}

std::string OllamaReply::piece(const ReplyPiece& piece) {
  switch (piece.kind) {
    case ReplyPiece::Kind::kArguments:
      arguments_ += piece.text;
      return {};
    case ReplyPiece::Kind::kCall: {
      std::string text = close_call();
      call_open_ = true;
      call_name_ = piece.name;
      arguments_.clear();
      return text;
    }
    case ReplyPiece::Kind::kReasoning:
      thinking_ += piece.text;
      return close_call() + to_line(part("", piece.text));
    case ReplyPiece::Kind::kText:
      break;
  }
  text_ += piece.text;
  return close_call() + to_line(part(piece.text, ""));
}

std::string OllamaReply::closing() { return close_call() + to_line(last("", "")); }

std::string OllamaReply::failure(const ApiError& error) {
  return to_line(error_body(ErrorShape::kOllama, error));
}

json OllamaReply::object() {
  json whole = last(text_, thinking_);
  if (!calls_.empty()) whole["message"]["tool_calls"] = calls_;
  return whole;
}

}  // namespace hearth
