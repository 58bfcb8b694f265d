// Checks texts against grammars the way generation would: token by token, through masks. For
// `hearth grammar` and the benchmark of masks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/json_value.h"
#include "engine/text/tokenizer.h"

namespace hearth {

struct TextVerdict {
  bool accepted = false;
  std::size_t tokens = 0;       // that the grammar allowed
  std::size_t bytes = 0;        // of the text, in these tokens
  std::string refused_token;    // the first that it did not, if there is one
  std::vector<double> mask_us;  // time of each mask
};

// Follows the tokens of `text` until a mask forbids one, then asks whether the text may end.
TextVerdict check_text(const std::shared_ptr<const grammar::Grammar>& grammar,
                       const std::shared_ptr<const grammar::TokenTrie>& trie,
                       const Tokenizer& tokenizer, const std::string& text);

// Why a text is not accepted, with the end of what was, for a message.
std::string explain_refusal(const TextVerdict& verdict, std::string_view text);

// One line of a batch: {"name", "schema", "tests": [{"valid", "data"}]}.
struct SchemaCase {
  struct Instance {
    std::optional<bool> valid;  // what the file says
    std::string text;           // compact JSON
  };
  std::string name, schema;
  std::vector<Instance> instances;
};

Result<SchemaCase> parse_schema_case(std::string_view line);

struct SchemaVerdict {
  std::string name;
  std::optional<std::string> refused;  // why the schema does not compile
  std::vector<bool> accepted;          // by instance
  double compile_us = 0;
  std::vector<double> mask_us;
  bool right = false;      // compiled, and every instance is judged as the file says
  std::size_t wrong = 0;   // invalid instances that were accepted
  std::size_t missed = 0;  // valid instances that were not
};

SchemaVerdict check_schema(const SchemaCase& one, const grammar::SchemaOptions& options,
                           const std::shared_ptr<const grammar::TokenTrie>& trie,
                           const Tokenizer& tokenizer);

}  // namespace hearth
