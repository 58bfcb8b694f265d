// Which fields a request may have. A field that is not supported but would change the answer is
// refused by name, unless its value asks for nothing (null, false, an empty list, the default); so
// is an unknown field. Fields that change nothing are accepted. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "tools/server/api_error.h"

namespace hearth {

enum class ApiKind { kCompletion, kChat };

// The fields of a body for /v1/completions or /v1/chat/completions.
std::optional<ApiError> check_fields(ApiKind kind, const nlohmann::json& body);
// The fields of messages[index], its role and the types of its content's parts.
std::optional<ApiError> check_message(size_t index, const nlohmann::json& message);
// The fields of a body that may have only `known` ones.
std::optional<ApiError> check_known(const nlohmann::json& body,
                                    std::span<const std::string_view> known);

}  // namespace hearth
