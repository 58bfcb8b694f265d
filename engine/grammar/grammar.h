// A compiled grammar: what a text may look like. Compiling finds everything that is not supported;
// a grammar that exists is enforced exactly.
//
// Immutable for its users: any thread may make matchers of it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "engine/grammar/token_trie.h"
#include "runtime/result.h"

namespace hearth::grammar {

struct GrammarData;
struct Workspace;

struct SchemaOptions {
  // The most white space characters in a row between two tokens of the JSON text; 0 is compact.
  std::uint32_t max_whitespace = 8;
  // Accepts the properties of an object in any order. Generation is better off with the schema's:
  // models follow it, and more of the text is forced.
  bool any_order = false;
  // Overrides max_whitespace: at most one blank after a comma or a colon, as models write calls.
  bool single_blanks = false;
  // For generating texts, not for judging them. Numbers have one spelling then: those of `enum` and
  // `const` as the schema writes them, and multiples with no more decimals than their divisor.
  // Never writes -0, which is valid JSON but never wanted.
  bool generates = false;
};

class Grammar {
 public:
  // JSON Schema 2020-12; drafts 4 to 2019-09 by their $schema. A schema that cannot be enforced
  // exactly is refused, with the keyword and its path.
  static Result<std::shared_ptr<const Grammar>> compile_json_schema(
      std::string_view schema, const SchemaOptions& options = {});
  // Any JSON object, as response_format's json_object asks for.
  static Result<std::shared_ptr<const Grammar>> compile_json_object(
      const SchemaOptions& options = {});
  // The whole text matches.
  static Result<std::shared_ptr<const Grammar>> compile_regex(std::string_view pattern);
  static Result<std::shared_ptr<const Grammar>> compile_choice(
      std::span<const std::string> choices);
  // llama.cpp's format; the text is what its rule `root` matches.
  static Result<std::shared_ptr<const Grammar>> compile_gbnf(std::string_view text);
  // Lark's format: rules in lower case, terminals in upper case; the text is what `start` matches.
  // `schemas` holds for the JSON schemas in it.
  static Result<std::shared_ptr<const Grammar>> compile_lark(std::string_view text,
                                                             const SchemaOptions& schemas = {});
  // GBNF or Lark, by the first rule: `name ::=` or `name:`.
  static Result<std::shared_ptr<const Grammar>> compile_grammar(std::string_view text,
                                                                const SchemaOptions& schemas = {});

  explicit Grammar(std::shared_ptr<const GrammarData> data);
  ~Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  // The automaton and masks that all matchers for this vocabulary share.
  std::shared_ptr<Workspace> workspace(const std::shared_ptr<const TokenTrie>& trie) const;

 private:
  std::shared_ptr<const GrammarData> data_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Workspace> workspace_;  // the latest
};

}  // namespace hearth::grammar
