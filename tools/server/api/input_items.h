// The items that a stored response was generated from, as OpenAI's Responses API lists them. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/server/api_error.h"

namespace hearth {

// The messages of a stored conversation before the response's own, as items, in their order. Their
// ids follow from the response's, so that they stay the same.
std::vector<nlohmann::json> input_items(const nlohmann::json& conversation,
                                        std::string_view response_id);

// The page of a list that a query asks for: `order` (desc, the default, or asc), `limit` (20 by
// default) and `after`, the id of the item before its first. Other parameters change nothing.
std::variant<nlohmann::json, ApiError> list_page(std::vector<nlohmann::json> items,
                                                 std::string_view query);

}  // namespace hearth
