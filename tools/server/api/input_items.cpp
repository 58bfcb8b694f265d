#include "tools/server/api/input_items.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tools/server/http_parser.h"

namespace hearth {
namespace {

using nlohmann::json;

// Adds items with ids that are made of the response's.
class ItemList {
 public:
  explicit ItemList(std::string_view response_id)
      : response_(response_id.substr(std::min(response_id.size(), response_id.find('_') + 1))) {}

  void add(const char* prefix, json item) {
    item["id"] = fmt::format("{}_{}_in{}", prefix, response_, items_.size());
    items_.push_back(std::move(item));
  }
  void add_message(const json& role, const json& text) {
    const bool output = role == "assistant";
    json part = {{"type", output ? "output_text" : "input_text"}, {"text", text}};
    if (output) part["annotations"] = json::array();
    add("msg", {{"type", "message"},
                {"status", "completed"},
                {"role", role},
                {"content", json::array({std::move(part)})}});
  }
  std::vector<json> take() { return std::move(items_); }

 private:
  std::string response_;
  std::vector<json> items_;
};

void add_assistant_items(const json& message, ItemList& list) {
  if (message.contains("reasoning_content"))
    list.add("rs", {{"type", "reasoning"},
                    {"summary", json::array()},
                    {"content", json::array({{{"type", "reasoning_text"},
                                              {"text", message["reasoning_content"]}}})}});
  const json& content = message["content"];
  if (!content.is_null()) list.add_message("assistant", content);
  if (!message.contains("tool_calls")) return;
  for (const json& call : message["tool_calls"])
    list.add("fc", {{"type", "function_call"},
                    {"status", "completed"},
                    {"call_id", call["id"]},
                    {"name", call["function"]["name"]},
                    {"arguments", call["function"]["arguments"]}});
}

// A parameter of a query; the first one counts.
std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name)
      return percent_decoded(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::nullopt;
}

ApiError wrong_parameter(const char* name, std::string_view what) {
  return {.message = fmt::format("'{}' {}", name, what), .param = name};
}

}  // namespace

std::vector<json> input_items(const json& conversation, std::string_view response_id) {
  ItemList list(response_id);
  for (size_t i = 0; i + 1 < conversation.size(); ++i) {
    const json& message = conversation[i];
    const json& role = message["role"];
    if (role == "assistant")
      add_assistant_items(message, list);
    else if (role == "tool")
      list.add("fco", {{"type", "function_call_output"},
                       {"status", "completed"},
                       {"call_id", message["tool_call_id"]},
                       {"output", message["content"]}});
    else
      list.add_message(role, message["content"]);
  }
  return list.take();
}

std::variant<json, ApiError> list_page(std::vector<json> items, std::string_view query) {
  constexpr size_t kDefault = 20, kMost = 100;
  const std::string order = query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") return wrong_parameter("order", "must be asc or desc");
  size_t limit = kDefault;
  if (const auto text = query_value(query, "limit")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
    if (error != std::errc() || end != text->data() + text->size() || limit < 1 || limit > kMost)
      return wrong_parameter("limit", fmt::format("must be a number from 1 to {}", kMost));
  }
  if (order == "desc") std::ranges::reverse(items);
  auto first = items.begin();
  if (const auto after = query_value(query, "after")) {
    first = std::ranges::find_if(items, [&](const json& item) { return item["id"] == *after; });
    if (first == items.end()) return wrong_parameter("after", "is not the id of an item");
    ++first;
  }
  const auto end = first + std::min(items.end() - first, static_cast<std::ptrdiff_t>(limit));
  json page = {{"object", "list"},
               {"data", std::vector<json>(first, end)},
               {"first_id", nullptr},
               {"last_id", nullptr},
               {"has_more", end != items.end()}};
  if (first != end) {
    page["first_id"] = (*first)["id"];
    page["last_id"] = (*(end - 1))["id"];
  }
  return page;
}

}  // namespace hearth
