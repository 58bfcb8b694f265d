// Grammar::compile_json_schema().
#include "engine/grammar/grammar.h"
#include "engine/grammar/rules.h"
#include "engine/grammar/schema_compiler.h"
#include "engine/grammar/schema_document.h"

namespace hearth::grammar {

Result<std::shared_ptr<const Grammar>> Grammar::compile_json_schema(std::string_view schema,
                                                                    const SchemaOptions& options) {
  auto parsed = parse_json(schema);
  if (!parsed.ok()) return invalid("the schema is " + parsed.error().message);
  try {
    SchemaDocument document(std::move(parsed).value());
    auto data = std::make_shared<GrammarData>();
    data->set_options(options);
    SchemaCompiler compiler(document, *data);
    data->root = compiler.compile();
    return std::make_shared<const Grammar>(std::move(data));
  } catch (Refusal& refusal) {
    return std::move(refusal.error);
  }
}

Result<std::shared_ptr<const Grammar>> Grammar::compile_json_object(const SchemaOptions& options) {
  return compile_json_schema(R"({"type": "object"})", options);
}

}  // namespace hearth::grammar
