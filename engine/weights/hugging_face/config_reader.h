// Reads a JSON object of a Hugging Face folder field by field. A field that is absent or null has
// no value; one of the wrong type is an error that names it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth::hugging_face {

class ConfigReader {
 public:
  // REQUIRES: an object that outlives the reader.
  explicit ConfigReader(const nlohmann::json& object) : object_(object) {}

  // Whether the field is present, even if it is null.
  bool has(std::string_view field) const { return object_.contains(field); }
  // Null if the field is absent or null.
  const nlohmann::json* find(std::string_view field) const;

  Result<std::optional<std::uint64_t>> integer(std::string_view field) const;
  Result<std::optional<double>> number(std::string_view field) const;
  Result<std::optional<bool>> boolean(std::string_view field) const;
  Result<std::optional<std::string>> text(std::string_view field) const;
  Result<std::optional<std::vector<double>>> numbers(std::string_view field) const;
  Result<std::optional<std::vector<std::string>>> texts(std::string_view field) const;
  // A reader for the object in the field.
  Result<std::optional<ConfigReader>> object(std::string_view field) const;

 private:
  const nlohmann::json& object_;
};

}  // namespace hearth::hugging_face
