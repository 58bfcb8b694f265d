#include "tools/server/api/embeddings_request.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "tools/server/api/field_rules.h"

namespace hearth {
namespace {

using nlohmann::ordered_json;
using MaybeError = std::optional<ApiError>;

constexpr size_t kMostInputs = 2048;

constexpr std::string_view kEmbeddingsRead[] = {"input",      "model",   "encoding_format",
                                                "dimensions", "pooling", "priority"};
constexpr std::string_view kEmbeddingsHarmless[] = {"user"};
constexpr FieldRules kEmbeddingsRules{
    .read = kEmbeddingsRead, .passed = {}, .harmless = kEmbeddingsHarmless, .unsupported = {}};

constexpr std::string_view kOllamaEmbedRead[] = {"input", "model", "truncate", "dimensions"};
constexpr std::string_view kOllamaEmbeddingsRead[] = {"prompt", "model"};
// How Ollama runs a model, which is decided when this server starts.
constexpr std::string_view kOllamaEmbedHarmless[] = {"options", "keep_alive"};

MaybeError add_ids(const ordered_json& list, uint32_t vocabulary,
                   std::vector<EmbeddingsRequest::Input>& inputs) {
  std::vector<uint32_t> ids;
  for (const ordered_json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary)
      return field_error("input", fmt::format("must hold token ids below {}", vocabulary));
    ids.push_back(id.get<uint32_t>());
  }
  inputs.emplace_back(std::move(ids));
  return std::nullopt;
}

// One text, one list of ids, or a list of either.
MaybeError read_inputs(const ordered_json& body, uint32_t vocabulary,
                       std::vector<EmbeddingsRequest::Input>& inputs) {
  const ApiError wrong = field_error(
      "input",
      fmt::format("must be a string, a list of token ids, or a list of up to {} of either, "
                  "none of them empty",
                  kMostInputs));
  const ordered_json* const field = given_field(body, "input");
  if (field == nullptr || field->empty()) return wrong;
  const auto add = [&](const ordered_json& item) -> MaybeError {
    if (item.is_array() && !item.empty()) return add_ids(item, vocabulary, inputs);
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) return wrong;
    inputs.emplace_back(item.get<std::string>());
    return std::nullopt;
  };
  if (!field->is_array() || field->front().is_number()) return add(*field);
  if (field->size() > kMostInputs) return wrong;
  for (const ordered_json& item : *field)
    if (auto error = add(item)) return error;
  return std::nullopt;
}

MaybeError read_embedding_integer(const ordered_json& body, const char* name, int64_t low,
                                  int64_t high, auto& value) {
  const ordered_json* const field = given_field(body, name);
  if (field == nullptr) return std::nullopt;
  // A number that int64_t cannot hold is unsigned.
  const bool fits = field->is_number_integer() &&
                    (!field->is_number_unsigned() || field->get<uint64_t>() <= uint64_t(high));
  if (!fits || field->get<int64_t>() < low || field->get<int64_t>() > high)
    return field_error(name, fmt::format("must be an integer between {} and {}", low, high));
  value = static_cast<std::remove_reference_t<decltype(value)>>(field->get<int64_t>());
  return std::nullopt;
}

// Ollama takes texts only.
MaybeError read_ollama_input(const ordered_json& body, const char* name,
                             std::vector<EmbeddingsRequest::Input>& inputs) {
  const bool may_be_list = name == std::string_view("input");
  const ApiError wrong = field_error(
      name, may_be_list ? fmt::format("must be a string or a list of up to {} strings, none of "
                                      "them empty",
                                      kMostInputs)
                        : "must be a string that is not empty");
  const ordered_json* const field = given_field(body, name);
  if (field == nullptr || field->is_array() > may_be_list || field->size() > kMostInputs)
    return wrong;
  const auto add = [&](const ordered_json& item) {
    const bool is_good = item.is_string() && !item.get_ref<const std::string&>().empty();
    if (is_good) inputs.emplace_back(item.get<std::string>());
    return is_good;
  };
  if (!field->is_array()) return add(*field) ? std::nullopt : MaybeError(wrong);
  for (const ordered_json& item : *field)
    if (!add(item)) return wrong;
  return inputs.empty() ? MaybeError(wrong) : std::nullopt;
}

}  // namespace

std::variant<EmbeddingsRequest, ApiError> parse_ollama_embedding(OllamaEmbedding call,
                                                                 std::string_view text,
                                                                 uint32_t width) {
  const auto parsed = parse_ordered_body(text);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const ordered_json& body = std::get<ordered_json>(parsed);
  const bool is_new = call == OllamaEmbedding::kEmbed;
  FieldRules rules{.read = kOllamaEmbeddingsRead,
                   .passed = {},
                   .harmless = kOllamaEmbedHarmless,
                   .unsupported = {}};
  if (is_new) rules.read = kOllamaEmbedRead;
  ordered_json none;
  if (auto error = pass_fields(rules, body, none)) return *error;
  EmbeddingsRequest request{.truncate = true};
  if (auto error = read_ollama_input(body, is_new ? "input" : "prompt", request.inputs))
    return *error;
  if (auto error = read_embedding_integer(body, "dimensions", 1, width, request.dimensions))
    return *error;
  if (const ordered_json* truncate = given_field(body, "truncate")) {
    if (!truncate->is_boolean()) return field_error("truncate", "must be true or false");
    request.truncate = truncate->get<bool>();
  }
  return request;
}

std::variant<EmbeddingsRequest, ApiError> parse_embeddings_request(std::string_view text,
                                                                   uint32_t vocabulary,
                                                                   uint32_t width) {
  const auto parsed = parse_ordered_body(text);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const ordered_json& body = std::get<ordered_json>(parsed);
  ordered_json none;
  if (auto error = pass_fields(kEmbeddingsRules, body, none)) return *error;
  EmbeddingsRequest request;
  if (auto error = read_inputs(body, vocabulary, request.inputs)) return *error;
  if (auto error = read_embedding_integer(body, "dimensions", 1, width, request.dimensions))
    return *error;
  if (auto error = read_embedding_integer(body, "priority", -1000, 1000, request.priority))
    return *error;
  if (const ordered_json* format = given_field(body, "encoding_format")) {
    if (*format != "float" && *format != "base64")
      return field_error("encoding_format", "must be float or base64");
    request.base64 = *format == "base64";
  }
  if (const ordered_json* pooling = given_field(body, "pooling")) {
    if (*pooling != "mean" && *pooling != "last")
      return field_error("pooling", "must be mean or last");
    request.pooling = *pooling == "mean" ? Pooling::kMean : Pooling::kLast;
  }
  return request;
}

std::vector<float> shortened(std::span<const float> vector, uint32_t dimensions) {
  if (dimensions > 0) vector = vector.first(std::min<size_t>(dimensions, vector.size()));
  double square = 0;
  for (const float value : vector) square += double{value} * value;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  std::vector<float> unit;
  unit.reserve(vector.size());
  for (const float value : vector) unit.push_back(static_cast<float>(value * scale));
  return unit;
}

std::string to_base64(std::span<const float> vector) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  bytes.reserve(vector.size() * 4);
  for (const float value : vector)
    for (uint32_t bits = std::bit_cast<uint32_t>(value), i = 0; i < 4; ++i)
      bytes += static_cast<char>(bits >> 8 * i & 0xff);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace hearth
