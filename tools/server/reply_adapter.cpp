#include "tools/server/reply_adapter.h"

#include <utility>
#include <vector>

#include "tools/server/openai_reply.h"

namespace hearth {
namespace {

using nlohmann::json;

std::string member_text(const json& object, const char* name) {
  const auto place = object.find(name);
  return place != object.end() && place->is_string() ? place->get<std::string>() : std::string();
}

void add_calls(const json& calls, std::vector<ReplyPiece>& pieces) {
  for (const json& call : calls) {
    const auto function = call.find("function");
    if (function == call.end()) continue;
    if (std::string name = member_text(*function, "name"); !name.empty())
      pieces.push_back({.kind = ReplyPiece::Kind::kCall,
                        .id = member_text(call, "id"),
                        .name = std::move(name)});
    if (std::string arguments = member_text(*function, "arguments"); !arguments.empty())
      pieces.push_back({.kind = ReplyPiece::Kind::kArguments, .text = std::move(arguments)});
  }
}

// What a chunk's delta, or a whole reply's message, adds to the answer, in the order in which
// models write it.
std::vector<ReplyPiece> read_pieces(const json& delta) {
  std::vector<ReplyPiece> pieces;
  if (std::string text = member_text(delta, "reasoning_content"); !text.empty())
    pieces.push_back({.kind = ReplyPiece::Kind::kReasoning, .text = std::move(text)});
  if (std::string text = member_text(delta, "content"); !text.empty())
    pieces.push_back({.text = std::move(text)});
  if (const auto calls = delta.find("tool_calls"); calls != delta.end() && calls->is_array())
    add_calls(*calls, pieces);
  return pieces;
}

}  // namespace

std::string ReplyAdapter::open_once() {
  return std::exchange(opened_, true) ? std::string() : opening();
}

std::string ReplyAdapter::take(const json& choice, const json& delta) {
  std::string text;
  for (const ReplyPiece& one : read_pieces(delta)) text += piece(one);
  if (std::string reason = member_text(choice, "finish_reason"); !reason.empty())
    finish_reason_ = std::move(reason);
  return text;
}

std::string ReplyAdapter::chunk(const json& chunk) {
  if (failed_) return {};
  std::string text = open_once();
  if (const auto error = chunk.find("error"); error != chunk.end()) {
    failed_ = true;
    return text + failure({.status = 503,
                           .message = member_text(*error, "message"),
                           .type = member_text(*error, "type"),
                           .code = member_text(*error, "code")});
  }
  for (const json& choice : chunk.value("choices", json::array())) {
    const auto delta = choice.find("delta");
    // A chunk of a plain completion has its text in the choice itself.
    text += take(choice,
                 delta != choice.end() ? *delta : json{{"content", member_text(choice, "text")}});
  }
  return text;
}

std::string ReplyAdapter::end(const GenerationEnd& end) {
  if (failed_) return {};
  end_ = end;
  std::string text = open_once();
  return text + closing();
}

std::string ReplyAdapter::whole(const json& completion, const GenerationEnd& end,
                                std::span<const json> deltas) {
  open_once();
  for (const json& choice : completion.at("choices")) {
    for (const json& delta : deltas) take(choice, delta);
    if (!deltas.empty()) continue;
    const auto message = choice.find("message");
    take(choice, message != choice.end() ? *message : json{{"content", choice.at("text")}});
  }
  end_ = end;
  closing();
  return to_text(object());
}

}  // namespace hearth
