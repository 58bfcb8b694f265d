#include "tools/server/parsed_reply.h"

#include <random>

namespace hearth {
namespace {

using nlohmann::json;

// Nine letters and digits, because Mistral's templates refuse any other id.
std::string call_id(uint64_t seed, size_t index) {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::seed_seq words{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                      static_cast<uint32_t>(index)};
  std::mt19937 random(words);
  std::string id;
  for (int i = 0; i < 9; ++i) id += kDigits[random() % kDigits.size()];
  return id;
}

json call_delta(size_t index, json fields) {
  fields["index"] = index;
  return {{"tool_calls", json::array({std::move(fields)})}};
}

}  // namespace

ParsedReply::ParsedReply(const Options& options)
    : parser_(options.parser), parallel_(options.parallel), id_seed_(options.id_seed) {}

std::vector<json> ParsedReply::push(std::string_view text) { return take(parser_.push(text)); }
std::vector<json> ParsedReply::finish(bool cut_off) { return take(parser_.finish(cut_off)); }

std::vector<json> ParsedReply::take(const std::vector<ReplyEvent>& events) {
  std::vector<json> deltas;
  for (const ReplyEvent& event : events)
    if (json delta = take_one(event); !delta.is_null()) deltas.push_back(std::move(delta));
  return deltas;
}

json ParsedReply::take_one(const ReplyEvent& event) {
  using Kind = ReplyEvent::Kind;
  if (event.kind == Kind::kContent) {
    content_ += event.text;
    return {{"content", event.text}};
  }
  if (event.kind == Kind::kReasoning) {
    reasoning_ += event.text;
    return {{"reasoning_content", event.text}};
  }
  if (!parallel_ && event.call > 0) return {};
  if (event.kind == Kind::kCallBegin) {
    calls_.push_back({.id = call_id(id_seed_, event.call), .name = event.text});
    return call_delta(event.call, {{"id", calls_.back().id},
                                   {"type", "function"},
                                   {"function", {{"name", event.text}, {"arguments", ""}}}});
  }
  if (event.kind == Kind::kArguments) {
    calls_.back().arguments += event.text;
    return call_delta(event.call, {{"function", {{"arguments", event.text}}}});
  }
  if (event.text.empty()) return {};
  calls_.back().warning = event.text;
  return call_delta(event.call, {{"warning", event.text}});
}

json ParsedReply::message() const {
  json message = {{"role", "assistant"},
                  {"content", content_.empty() && has_calls() ? json() : json(content_)},
                  {"refusal", json()}};
  if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
  for (const Call& call : calls_) {
    json entry = {{"id", call.id},
                  {"type", "function"},
                  {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
    if (!call.warning.empty()) entry["warning"] = call.warning;
    message["tool_calls"].push_back(std::move(entry));
  }
  return message;
}

}  // namespace hearth
