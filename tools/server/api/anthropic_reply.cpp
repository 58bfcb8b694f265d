#include "tools/server/api/anthropic_reply.h"

#include <utility>

#include <fmt/format.h>

#include "tools/server/api/error_shape.h"
#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

using nlohmann::json;
using Kind = ReplyPiece::Kind;

std::string anthropic_event(const char* type, json fields) {
  fields["type"] = type;
  return fmt::format("event: {}\n{}", type, to_event(fields));
}

}  // namespace

AnthropicReply::AnthropicReply(std::string id, std::string model)
    : message_{{"id", std::move(id)},       {"type", "message"},        {"role", "assistant"},
               {"model", std::move(model)}, {"content", json::array()}, {"stop_reason", nullptr},
               {"stop_sequence", nullptr}} {}

std::string AnthropicReply::opening() {
  message_["usage"] = {{"input_tokens", prompt_tokens()},
                       {"cache_creation_input_tokens", 0},
                       {"cache_read_input_tokens", 0},
                       {"output_tokens", 0}};
  return anthropic_event("message_start", {{"message", message_}});
}

std::string AnthropicReply::block_event(const char* type, json fields) {
  fields["index"] = message_["content"].size() - 1;
  return anthropic_event(type, std::move(fields));
}

std::string AnthropicReply::open_block(Kind kind, const ReplyPiece& piece) {
  block_open_ = true;
  block_kind_ = kind;
  text_.clear();
  json block = kind == Kind::kText ? json{{"type", "text"}, {"text", ""}}
               : kind == Kind::kReasoning
                   ? json{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
                   : json{{"type", "tool_use"},
                          {"id", piece.id},
                          {"name", piece.name},
                          {"input", json::object()}};
  message_["content"].push_back(block);
  return block_event("content_block_start", {{"content_block", std::move(block)}});
}

std::string AnthropicReply::close_block() {
  if (!std::exchange(block_open_, false)) return {};
  if (block_kind_ == Kind::kCall) {
    json input = json::parse(text_, nullptr, /*allow_exceptions=*/false);
    // Without constraints a model may write anything; clients expect an object.
    block()["input"] = input.is_object() ? std::move(input) : json{{"arguments", text_}};
    if (text_.empty()) block()["input"] = json::object();
  } else {
    block()[block_kind_ == Kind::kText ? "text" : "thinking"] = text_;
  }
  return block_event("content_block_stop", json::object());
}

std::string AnthropicReply::piece(const ReplyPiece& piece) {
  const Kind kind = piece.kind == Kind::kArguments ? Kind::kCall : piece.kind;
  std::string text;
  if (!block_open_ || block_kind_ != kind || piece.kind == Kind::kCall) {
    text = close_block();
    text += open_block(kind, piece);
  }
  if (piece.kind == Kind::kCall) return text;
  text_ += piece.text;
  json delta = kind == Kind::kText ? json{{"type", "text_delta"}, {"text", piece.text}}
               : kind == Kind::kReasoning
                   ? json{{"type", "thinking_delta"}, {"thinking", piece.text}}
                   : json{{"type", "input_json_delta"}, {"partial_json", piece.text}};
  return text + block_event("content_block_delta", {{"delta", std::move(delta)}});
}

std::string AnthropicReply::closing() {
  std::string text = close_block();
  const GenerationEnd& end = ending();
  const bool stopped = !end.stop_string.empty() && finish_reason() == "stop";
  message_["stop_reason"] = finish_reason() == "length"       ? "max_tokens"
                            : finish_reason() == "tool_calls" ? "tool_use"
                            : stopped                         ? "stop_sequence"
                                                              : "end_turn";
  if (stopped) message_["stop_sequence"] = end.stop_string;
  // Cached tokens are not among the input tokens in this API.
  json& usage = message_["usage"];
  usage["input_tokens"] = end.prompt_tokens - end.cached_tokens;
  usage["cache_read_input_tokens"] = end.cached_tokens;
  usage["output_tokens"] = end.generated_tokens;
  text += anthropic_event(
      "message_delta",
      {{"delta",
        {{"stop_reason", message_["stop_reason"]}, {"stop_sequence", message_["stop_sequence"]}}},
       {"usage", usage}});
  return text + anthropic_event("message_stop", json::object());
}

std::string AnthropicReply::failure(const ApiError& error) {
  return anthropic_event("error", error_body(ErrorShape::kAnthropic, error));
}

}  // namespace hearth
