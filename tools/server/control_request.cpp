#include "tools/server/control_request.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>

#include "tools/server/json_body.h"
#include "tools/server/request_fields.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> kControlFields = {"paused", "step",   "pace",    "policy",
                                                            "limits", "cancel", "priority"};

ApiError wrong_control(std::string_view field, std::string_view wanted) {
  return {.message = fmt::format("'{}' must be {}", field, wanted), .param = std::string(field)};
}

std::optional<ApiError> read_flag(const json& body, const char* field, bool& value) {
  if (!body.at(field).is_boolean()) return wrong_control(field, "true or false");
  value = body.at(field).get<bool>();
  return {};
}

std::optional<ApiError> read_policy(const json& value, const Policy& present,
                                    std::optional<Policy>& policy) {
  if (value.is_string()) {
    policy = named_policy(value.get<std::string>());
    if (!policy)
      return wrong_control(
          "policy", fmt::format("one of {}, or an object of switches",
                                fmt::join(policy_names().begin(), policy_names().end(), ", ")));
    return {};
  }
  if (!value.is_object()) return wrong_control("policy", "a name or an object of switches");
  policy = present;
  for (const auto& [name, setting] : value.items()) {
    const std::string text = setting.is_string() ? setting.get<std::string>() : setting.dump();
    if (const auto problem = set_switch(*policy, name, text))
      return ApiError{.message = fmt::format("'policy.{}': {}", name, *problem),
                      .param = "policy." + name};
  }
  return {};
}

std::optional<ApiError> read_limits(const json& value, ControlRequest& request) {
  if (!value.is_object()) return wrong_control("limits", "an object");
  for (const auto& [name, number] : value.items()) {
    std::optional<uint32_t>* const limit = name == "max_sequences"     ? &request.max_sequences
                                           : name == "max_step_tokens" ? &request.max_step_tokens
                                           : name == "pool_blocks"     ? &request.pool_blocks
                                                                       : nullptr;
    if (limit == nullptr)
      return ApiError{.message = fmt::format("'limits.{}' cannot be changed; max_sequences, "
                                             "max_step_tokens and pool_blocks can",
                                             name),
                      .param = "limits." + name,
                      .code = "unknown_parameter"};
    if (!number.is_number_unsigned() || number.get<uint64_t>() == 0 ||
        number.get<uint64_t>() > std::numeric_limits<uint32_t>::max())
      return wrong_control("limits." + name, "a whole number from 1");
    *limit = number.get<uint32_t>();
  }
  return {};
}

std::optional<ApiError> read_cancelled(const json& value, std::vector<RequestId>& cancelled) {
  if (!value.is_array()) return wrong_control("cancel", "a list of request ids");
  for (const json& id : value) {
    if (!id.is_number_unsigned()) return wrong_control("cancel", "a list of request ids");
    cancelled.push_back(id.get<RequestId>());
  }
  return {};
}

std::optional<ApiError> read_priority(const json& value,
                                      std::optional<ControlRequest::Priority>& priority) {
  const bool complete = value.is_object() && value.contains("request") &&
                        value["request"].is_number_unsigned() && value.contains("value") &&
                        value["value"].is_number_integer();
  if (!complete) return wrong_control("priority", "an object with 'request' and 'value'");
  const auto number = value["value"].get<int64_t>();
  if (std::abs(number) > std::numeric_limits<int32_t>::max())
    return wrong_control("priority.value", "a number of 32 bits");
  priority = {.request = value["request"].get<RequestId>(), .value = static_cast<int32_t>(number)};
  return {};
}

}  // namespace

std::variant<ControlRequest, ApiError> parse_control_request(std::string_view body,
                                                             const Policy& present) {
  const auto parsed = parse_json_body(body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const json& object = std::get<json>(parsed);
  if (auto error = check_known(object, kControlFields)) return std::move(*error);
  ControlRequest request;
  std::optional<ApiError> error;
  if (object.contains("paused")) error = read_flag(object, "paused", request.paused.emplace());
  if (!error && object.contains("step")) error = read_flag(object, "step", request.step);
  if (!error && object.contains("pace")) {
    const json& pace = object["pace"];
    if (!pace.is_number() || pace.get<double>() < 0)
      error = wrong_control("pace", "steps per second, or 0 for full speed");
    else
      request.pace = pace.get<double>();
  }
  if (!error && object.contains("policy"))
    error = read_policy(object["policy"], present, request.policy);
  if (!error && object.contains("limits")) error = read_limits(object["limits"], request);
  if (!error && object.contains("cancel"))
    error = read_cancelled(object["cancel"], request.cancelled);
  if (!error && object.contains("priority"))
    error = read_priority(object["priority"], request.priority);
  if (error) return std::move(*error);
  return request;
}

}  // namespace hearth
