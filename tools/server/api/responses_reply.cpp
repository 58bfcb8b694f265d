#include "tools/server/api/responses_reply.h"

#include <utility>

#include <fmt/format.h>

#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

using nlohmann::json;
using Kind = ReplyPiece::Kind;

json text_part(const std::string& text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::array()},
          {"logprobs", json::array()}};
}
json reasoning_part(const std::string& text) {
  return {{"type", "reasoning_text"}, {"text", text}};
}

json responses_usage(const GenerationEnd& end) {
  return {{"input_tokens", end.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", end.cached_tokens}}},
          {"output_tokens", end.generated_tokens},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", end.prompt_tokens + end.generated_tokens}};
}

}  // namespace

ResponsesReply::ResponsesReply(Head head, ResponseStore* store)
    : conversation_(std::move(head.conversation)), store_(store), response_(std::move(head.echo)) {
  response_["id"] = std::move(head.id);
  response_["object"] = "response";
  response_["created_at"] = head.created;
  response_["model"] = std::move(head.model);
  response_["status"] = "in_progress";
  response_["output"] = json::array();
}

std::string ResponsesReply::event(const char* type, json fields) {
  fields["type"] = type;
  fields["sequence_number"] = sequence_++;
  return fmt::format("event: {}\n{}", type, to_event(fields));
}

json ResponsesReply::place(bool with_part) {
  json fields = {{"item_id", item()["id"]}, {"output_index", response_["output"].size() - 1}};
  if (with_part) fields["content_index"] = 0;
  return fields;
}

std::string ResponsesReply::opening() {
  std::string text = event("response.created", {{"response", response_}});
  text += event("response.in_progress", {{"response", response_}});
  return text;
}

std::string ResponsesReply::open_item(Kind kind, const ReplyPiece& piece) {
  const auto index = response_["output"].size();
  const std::string id = response_["id"].get<std::string>().substr(5);
  item_open_ = true;
  item_kind_ = kind;
  text_.clear();
  json item = {{"status", "in_progress"}};
  switch (kind) {
    case Kind::kText:
      item.update({{"type", "message"}, {"role", "assistant"}, {"content", json::array()}});
      item["id"] = fmt::format("msg_{}_{}", id, index);
      break;
    case Kind::kReasoning:
      item.update({{"type", "reasoning"}, {"summary", json::array()}, {"content", json::array()}});
      item["id"] = fmt::format("rs_{}_{}", id, index);
      break;
    default:
      item.update({{"type", "function_call"},
                   {"call_id", piece.id},
                   {"name", piece.name},
                   {"arguments", ""}});
      item["id"] = fmt::format("fc_{}_{}", id, index);
  }
  response_["output"].push_back(item);
  std::string text =
      event("response.output_item.added", {{"output_index", index}, {"item", std::move(item)}});
  if (kind == Kind::kCall) return text;
  json added = place(true);
  added["part"] = kind == Kind::kText ? text_part("") : reasoning_part("");
  return text + event("response.content_part.added", std::move(added));
}

std::string ResponsesReply::close_item(const char* status) {
  if (!std::exchange(item_open_, false)) return {};
  std::string text;
  item()["status"] = status;
  json done = place(item_kind_ != Kind::kCall);
  if (item_kind_ == Kind::kCall) {
    item()["arguments"] = text_;
    done["arguments"] = text_;
    done["name"] = item()["name"];
    text = event("response.function_call_arguments.done", std::move(done));
  } else {
    const bool is_text = item_kind_ == Kind::kText;
    const json part = is_text ? text_part(text_) : reasoning_part(text_);
    item()["content"] = json::array({part});
    done["text"] = text_;
    if (is_text) done["logprobs"] = json::array();
    text = event(is_text ? "response.output_text.done" : "response.reasoning_text.done",
                 std::move(done));
    json part_done = place(true);
    part_done["part"] = part;
    text += event("response.content_part.done", std::move(part_done));
  }
  return text + event("response.output_item.done",
                      {{"output_index", response_["output"].size() - 1}, {"item", item()}});
}

std::string ResponsesReply::piece(const ReplyPiece& piece) {
  const Kind kind = piece.kind == Kind::kArguments ? Kind::kCall : piece.kind;
  std::string text;
  if (!item_open_ || item_kind_ != kind || piece.kind == Kind::kCall) {
    text = close_item("completed");
    text += open_item(kind, piece);
  }
  if (piece.kind == Kind::kCall) return text;
  text_ += piece.text;
  json fields = place(kind != Kind::kCall);
  fields["delta"] = piece.text;
  if (kind == Kind::kText) fields["logprobs"] = json::array();
  return text + event(kind == Kind::kText        ? "response.output_text.delta"
                      : kind == Kind::kReasoning ? "response.reasoning_text.delta"
                                                 : "response.function_call_arguments.delta",
                      std::move(fields));
}

std::string ResponsesReply::closing() {
  const bool complete = finish_reason() != "length";
  std::string text;
  // An answer without a token is an empty message.
  if (response_["output"].empty()) text = open_item(Kind::kText, {});
  text += close_item(complete ? "completed" : "incomplete");
  response_["status"] = complete ? "completed" : "incomplete";
  if (!complete) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response_["usage"] = responses_usage(ending());
  keep();
  return text +
         event(complete ? "response.completed" : "response.incomplete", {{"response", response_}});
}

std::string ResponsesReply::failure(const ApiError& error) {
  response_["status"] = "failed";
  response_["error"] = {{"code", "server_error"}, {"message", error.message}};
  return event("response.failed", {{"response", response_}});
}

// Stores the response, and the conversation that a later one continues.
void ResponsesReply::keep() {
  if (store_ == nullptr) return;
  nlohmann::ordered_json message = {{"role", "assistant"}, {"content", nullptr}};
  for (const json& item : response_["output"]) {
    if (item["type"] == "message")
      message["content"] = item["content"][0]["text"];
    else if (item["type"] == "reasoning")
      message["reasoning_content"] = item["content"][0]["text"];
    else if (item["type"] == "function_call")
      message["tool_calls"].push_back(
          {{"id", item["call_id"]},
           {"type", "function"},
           {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
  }
  // Appends the message to the list.
  conversation_.pop_back();
  if (conversation_.size() > 1) conversation_ += ',';
  conversation_ += message.dump(-1, ' ', false, json::error_handler_t::replace) + "]";
  store_->add(response_["id"],
              {.object = to_text(response_), .conversation = std::move(conversation_)});
}

}  // namespace hearth
