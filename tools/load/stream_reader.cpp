#include "tools/load/stream_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hearth {
namespace {

using nlohmann::json;

const json* member_of(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto place = object.find(name);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

bool has_content(const json* value) {
  if (value == nullptr) return false;
  return value->is_string() ? !value->get_ref<const std::string&>().empty()
                            : value->is_array() && !value->empty();
}

// Whether a choice has text: of a completion, or of a chat's answer, reasoning or calls. The first
// chunk of a chat may have only a role, and the last chunk only a reason to end.
bool chunk_has_text(const json& choice) {
  if (has_content(member_of(choice, "text"))) return true;
  const json* const delta = member_of(choice, "delta");
  if (delta == nullptr) return false;
  for (const char* name : {"content", "reasoning_content", "reasoning", "tool_calls"})
    if (has_content(member_of(*delta, name))) return true;
  return false;
}

void read_count(const json& usage, const char* name, std::optional<uint64_t>& count) {
  const json* const value = member_of(usage, name);
  if (value != nullptr && value->is_number_unsigned()) count = value->get<uint64_t>();
}

std::string json_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// One line, not too long.
std::string error_line(const json& error) {
  const json* const message = member_of(error, "message");
  std::string text = message != nullptr && message->is_string() ? message->get<std::string>()
                     : error.is_string()                        ? error.get<std::string>()
                                                                : json_text(error);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  constexpr size_t kMostBytes = 200;
  return text.substr(0, kMostBytes);
}

}  // namespace

std::string error_text_of(std::string_view body) {
  const json parsed = json::parse(body, nullptr, false);
  if (parsed.is_discarded()) return error_line(json(std::string(body)));
  const json* const error = member_of(parsed, "error");
  return error_line(error != nullptr ? *error : parsed);
}

Status StreamReader::push(std::string_view bytes, double now, StreamedReply& reply) {
  std::vector<ServerEvent> events;
  HEARTH_TRY(parser_.push(bytes, events));
  for (const ServerEvent& event : events) HEARTH_TRY(take_event(event.data, now, reply));
  return {};
}

Status StreamReader::take_event(const std::string& data, double now, StreamedReply& reply) {
  if (data == "[DONE]") {
    reply.complete = true;
    return {};
  }
  const json chunk = json::parse(data, nullptr, false);
  if (!chunk.is_object())
    return invalid(fmt::format("an event is not a JSON object: {}", data.substr(0, 60)));
  if (const json* const error = member_of(chunk, "error")) {
    reply.error = error_line(*error);
    return {};
  }
  if (const json* const usage = member_of(chunk, "usage")) {
    read_count(*usage, "prompt_tokens", reply.prompt_tokens);
    read_count(*usage, "completion_tokens", reply.generated_tokens);
  }
  const json* const choices = member_of(chunk, "choices");
  if (choices == nullptr || !choices->is_array()) return {};
  for (const json& choice : *choices) {
    if (chunk_has_text(choice)) reply.text_times.push_back(now);
    // Some servers do not send [DONE].
    if (member_of(choice, "finish_reason") != nullptr) reply.complete = true;
  }
  return {};
}

}  // namespace hearth
