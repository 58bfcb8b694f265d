// The fields of a request that say what its text has to be: OpenAI's response_format, vLLM's
// structured_outputs, llama.cpp's grammar and json_schema. Pure, except for GrammarCache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/grammar/grammar.h"
#include "runtime/result.h"
#include "tools/server/api_error.h"

namespace hearth {

struct StructuredOutput {
  enum class Kind : uint8_t { kNone, kJsonObject, kJsonSchema, kRegex, kChoice, kGrammar };
  Kind kind = Kind::kNone;
  std::string text = {};                  // the schema as JSON, the expression or the grammar
  std::vector<std::string> choices = {};  // of kChoice
  bool compact = true;                    // JSON without white space between its parts
  bool single_blanks = false;             // at most one, after a comma or a colon
  std::string field = {};                 // where the request says so

  bool operator==(const StructuredOutput&) const = default;
};

// `body` is the parsed `text`. A schema keeps the order of its properties, which `body` has lost.
std::variant<StructuredOutput, ApiError> read_structured_fields(const nlohmann::json& body,
                                                                std::string_view text);

// The grammar, within the limits of the grammar library; null if nothing is asked for. May take a
// second for a schema made for it.
Result<std::shared_ptr<const grammar::Grammar>> compile_structured(const StructuredOutput& output);
// The error for a client whose schema or grammar cannot be used.
ApiError structured_error(const StructuredOutput& output, const Error& error);

// Keeps the grammars that were used last: clients send the same schema with every request, and
// requests of one grammar share its masks. Any thread may use it.
class GrammarCache {
 public:
  Result<std::shared_ptr<const grammar::Grammar>> compile(const StructuredOutput& output);

 private:
  // A grammar's states and masks may take up to some hundred megabytes.
  static constexpr size_t kMost = 8;

  struct Entry {
    StructuredOutput output;
    std::shared_ptr<const grammar::Grammar> grammar;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // the one used last comes first
};

}  // namespace hearth
