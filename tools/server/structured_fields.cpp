#include "tools/server/structured_fields.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/grammar/json_value.h"
#include "engine/near_words.h"

namespace hearth {
namespace {

using nlohmann::json;
using OutputKind = StructuredOutput::Kind;
using Path = std::initializer_list<std::string_view>;

constexpr size_t kMostWordShown = 64;  // bytes of a client's word in a message

// Null, "", [] and {} ask for nothing in llama.cpp's fields. (As a schema, false allows nothing.)
bool says_nothing(const json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

// Reads the fields one after the other, and keeps the first error.
class StructuredReader {
 public:
  StructuredReader(const json& body, std::string_view text) : body_(body), text_(text) {}

  std::variant<StructuredOutput, ApiError> read() {
    for (const char* name : {"response_format", "structured_outputs", "grammar", "json_schema"}) {
      const auto field = body_.find(name);
      if (field == body_.end() || field->is_null()) continue;
      const std::string_view which(name);
      if (which == "response_format")
        read_response_format(*field);
      else if (which == "structured_outputs")
        read_structured_outputs(*field);
      else if (!says_nothing(*field))
        which == "grammar" ? read_text(OutputKind::kGrammar, name, *field)
                           : read_schema(name, *field, {"json_schema"});
    }
    if (error_) return *error_;
    return output_;
  }

 private:
  void read_response_format(const json& format) {
    const std::string name = "response_format";
    if (!format.is_object()) return wrong(name, "must be an object");
    const auto type = format.find("type");
    if (type == format.end() || !type->is_string())
      return wrong(name + ".type", "must be a string");
    if (*type == "text") return only(format, name, {"type"});
    if (*type == "json_object") {
      only(format, name, {"type", "schema"});
      // llama.cpp takes a schema here, too.
      const auto schema = format.find("schema");
      if (schema != format.end() && !says_nothing(*schema))
        return read_schema(name + ".schema", *schema, {"response_format", "schema"});
      return take(OutputKind::kJsonObject, name);
    }
    if (*type != "json_schema")
      return wrong(name + ".type",
                   fmt::format("is '{}'; supported are text, json_object, json_schema",
                               type->get<std::string>().substr(0, kMostWordShown)));
    only(format, name, {"type", "json_schema"});
    const auto inner = format.find("json_schema");
    if (inner == format.end() || !inner->is_object())
      return wrong(name + ".json_schema", "must be an object");
    only(*inner, name + ".json_schema", {"name", "description", "schema", "strict"});
    // Schemas are always enforced, so that nothing depends on it.
    if (const auto strict = inner->find("strict");
        strict != inner->end() && !strict->is_null() && !strict->is_boolean())
      return wrong(name + ".json_schema.strict", "must be true or false");
    const auto schema = inner->find("schema");
    read_schema(name + ".json_schema.schema", schema == inner->end() ? json() : *schema,
                {"response_format", "json_schema", "schema"});
  }

  void read_structured_outputs(const json& outputs) {
    const std::string name = "structured_outputs";
    if (!outputs.is_object()) return wrong(name, "must be an object");
    only(outputs, name,
         {"json", "json_object", "regex", "choice", "grammar", "disable_any_whitespace"});
    for (const auto& [key, value] : outputs.items()) {
      const std::string field = name + "." + key;
      if (key == "disable_any_whitespace" && value.is_boolean()) {
        output_.compact = value.get<bool>();
        continue;
      }
      // An empty list of choices or an empty schema is not nothing.
      if (value.is_null() || (key == "json_object" && value == false)) continue;
      if (key == "json" && value.is_string())
        read_text(OutputKind::kJsonSchema, field, value);
      else if (key == "json")
        read_schema(field, value, {"structured_outputs", "json"});
      else if (key == "regex")
        read_text(OutputKind::kRegex, field, value);
      else if (key == "grammar")
        read_text(OutputKind::kGrammar, field, value);
      else if (key == "choice")
        read_choice(field, value);
      else if (key == "json_object")
        value.is_boolean() ? take(OutputKind::kJsonObject, field)
                           : wrong(field, "must be true or false");
      else if (key == "disable_any_whitespace")
        wrong(field, "must be true or false");
    }
  }

  void read_text(OutputKind kind, const std::string& field, const json& value) {
    if (!value.is_string()) return wrong(field, "must be a string");
    take(kind, field);
    output_.text = value.get<std::string>();
  }

  void read_choice(const std::string& field, const json& value) {
    if (!value.is_array() || value.empty() ||
        !std::ranges::all_of(value, [](const json& one) { return one.is_string(); }))
      return wrong(field, "must be a list of at least one string");
    take(OutputKind::kChoice, field);
    output_.choices = value.get<std::vector<std::string>>();
  }

  // `path` is where the schema is in the body.
  void read_schema(const std::string& field, const json& value, Path path) {
    if (!value.is_object() && !value.is_boolean())
      return wrong(field, "must be a JSON schema, which is an object");
    take(OutputKind::kJsonSchema, field);
    const auto whole = grammar::parse_json(text_);
    if (!whole.ok()) return wrong(field, "cannot be read: " + whole.error().message);
    const grammar::JsonValue* at = &*whole;
    for (const std::string_view name : path)
      if (at != nullptr) at = at->find(name);
    if (at != nullptr) output_.text = grammar::to_text(*at);
  }

  // Only one field may say what the text has to be.
  void take(OutputKind kind, const std::string& field) {
    if (output_.kind != OutputKind::kNone)
      return fail({.message = fmt::format("'{}' contradicts '{}': only one of them may be given",
                                          field, output_.field),
                   .param = field});
    output_.kind = kind;
    output_.field = field;
  }

  // The object has no other fields, unless they say nothing.
  void only(const json& object, const std::string& name, Path known) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_null() || std::ranges::find(known, key) != known.end()) continue;
      const std::string field = name + "." + key.substr(0, kMostWordShown);
      const std::vector<std::string> words(known.begin(), known.end());
      if (const auto near = near_words(key, words, 1); !near.empty())
        return fail(
            {.message = fmt::format("'{}' is not a known field{}", field, did_you_mean(near)),
             .param = field,
             .code = "unknown_parameter"});
      return fail({.message = fmt::format("'{}' is not a known field; there {} {}", field,
                                          words.size() == 1 ? "is" : "are", fmt::join(words, ", ")),
                   .param = field,
                   .code = "unknown_parameter"});
    }
  }

  void wrong(const std::string& field, const std::string& what) {
    fail({.message = fmt::format("'{}' {}", field, what), .param = field});
  }
  void fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }

  const json& body_;
  const std::string_view text_;
  StructuredOutput output_;
  std::optional<ApiError> error_;
};

}  // namespace

std::variant<StructuredOutput, ApiError> read_structured_fields(const json& body,
                                                                std::string_view text) {
  return StructuredReader(body, text).read();
}

Result<std::shared_ptr<const grammar::Grammar>> compile_structured(const StructuredOutput& output) {
  grammar::SchemaOptions options{.single_blanks = output.single_blanks, .generates = true};
  if (output.compact) options.max_whitespace = 0;
  switch (output.kind) {
    case OutputKind::kNone:
      break;
    case OutputKind::kJsonObject:
      return grammar::Grammar::compile_json_object(options);
    case OutputKind::kJsonSchema:
      return grammar::Grammar::compile_json_schema(output.text, options);
    case OutputKind::kRegex:
      return grammar::Grammar::compile_regex(output.text);
    case OutputKind::kChoice:
      return grammar::Grammar::compile_choice(output.choices);
    case OutputKind::kGrammar:
      return grammar::Grammar::compile_grammar(output.text, options);
  }
  return std::shared_ptr<const grammar::Grammar>();
}

ApiError structured_error(const StructuredOutput& output, const Error& error) {
  std::string_view message = error.message;
  // The field's name says it already.
  constexpr std::string_view kGrammarPrefix = "grammar, ";
  if (message.starts_with(kGrammarPrefix)) message.remove_prefix(kGrammarPrefix.size());
  const char* const wrong = output.kind == OutputKind::kGrammar  ? "invalid_grammar"
                            : output.kind == OutputKind::kRegex  ? "invalid_regex"
                            : output.kind == OutputKind::kChoice ? "invalid_choice"
                                                                 : "invalid_schema";
  return {.message = fmt::format("'{}': {}", output.field, message),
          .param = output.field,
          .code = error.kind == ErrorKind::kUnsupported ? "unsupported_schema" : wrong};
}

Result<std::shared_ptr<const grammar::Grammar>> GrammarCache::compile(
    const StructuredOutput& output) {
  if (output.kind == OutputKind::kNone) return std::shared_ptr<const grammar::Grammar>();
  // Where a request says it does not matter.
  StructuredOutput key = output;
  key.field.clear();
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(entries_, key, &Entry::output);
    if (known != entries_.end()) {
      std::rotate(entries_.begin(), known, known + 1);
      return entries_.front().grammar;
    }
  }
  HEARTH_ASSIGN(std::shared_ptr<const grammar::Grammar> made, compile_structured(output));
  const std::lock_guard lock(mutex_);
  if (entries_.size() == kMost) entries_.pop_back();
  entries_.insert(entries_.begin(), {std::move(key), made});
  return made;
}

}  // namespace hearth
