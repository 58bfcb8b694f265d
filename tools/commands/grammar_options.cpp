#include "tools/commands/grammar_options.h"

#include <fmt/format.h>

#include "tools/commands/common_options.h"
#include "tools/read_text.h"

namespace hearth {

void GrammarOptionsGroup::declare(Options& options) {
  const Option& schema_option =
      options.add("--json-schema FILE", &schema, "Write JSON that satisfies this JSON schema")
          .check(check_file_name);
  const Option& grammar_option =
      options
          .add("--grammar FILE", &grammar,
               "Write only what this grammar allows (GBNF or Lark's format)")
          .check(check_file_name)
          .excludes(schema_option);
  regex_option_ =
      &options.add("--regex PATTERN", &regex, "Write a text that matches this regular expression")
           .excludes(schema_option)
           .excludes(grammar_option);
  options
      .add("--json-whitespace N", &whitespace,
           "With --json-schema: allow up to N white space characters in a row between the parts of "
           "the JSON")
      .range(0, 8)
      .needs(schema_option)
      .advanced();
}

bool GrammarOptionsGroup::given() const {
  return !schema.empty() || !grammar.empty() || regex_option_->given();
}

Result<std::shared_ptr<const grammar::Grammar>> GrammarOptionsGroup::compile() const {
  if (!given()) return std::shared_ptr<const grammar::Grammar>();
  if (regex_option_->given()) {
    auto compiled = grammar::Grammar::compile_regex(regex);
    if (!compiled.ok()) return invalid("--regex: " + compiled.error().message);
    return compiled;
  }
  const std::string& file = schema.empty() ? grammar : schema;
  HEARTH_ASSIGN(const std::string text, read_text_file(file));
  // None unless asked for: small models lose themselves in it, and more tokens are forced without.
  const grammar::SchemaOptions schema_options{.max_whitespace = whitespace, .generates = true};
  auto compiled = !schema.empty() ? grammar::Grammar::compile_json_schema(text, schema_options)
                  : file.ends_with(".lark") ? grammar::Grammar::compile_lark(text, schema_options)
                  : file.ends_with(".gbnf")
                      ? grammar::Grammar::compile_gbnf(text)
                      : grammar::Grammar::compile_grammar(text, schema_options);
  if (!compiled.ok()) return invalid(fmt::format("{}: {}", file, compiled.error().message));
  return compiled;
}

}  // namespace hearth
