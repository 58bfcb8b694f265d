#include "engine/grammar/schema_document.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace hearth::grammar {
namespace {

std::string escape_pointer(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '~')
      result += "~0";
    else if (c == '/')
      result += "~1";
    else
      result += c;
  }
  return result;
}

std::string unescape_pointer(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && std::isxdigit(text[i + 1]) &&
        std::isxdigit(text[i + 2])) {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  std::string plain;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == '~' && i + 1 < result.size() && (result[i + 1] == '0' || result[i + 1] == '1'))
      plain += result[++i] == '0' ? '~' : '/';
    else
      plain += result[i];
  }
  return plain;
}

std::size_t scheme_end(std::string_view uri) {
  const std::size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon == 0) return 0;
  for (const char c : uri.substr(0, colon))
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '.' && c != '-') return 0;
  return colon + 1;
}

// A reference without fragment against a base, as far as schemas need it.
std::string resolve_uri(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  if (scheme_end(reference) != 0) return reference;
  const std::size_t scheme = scheme_end(base);
  const bool has_host = base.compare(scheme, 2, "//") == 0;
  const std::size_t path = has_host ? std::min(base.find('/', scheme + 2), base.size()) : scheme;
  if (reference.compare(0, 2, "//") == 0) return base.substr(0, scheme) + reference;
  std::string joined;
  if (reference[0] == '/') {
    joined = reference;
  } else {
    const std::size_t slash = base.rfind('/');
    joined = slash == std::string::npos || slash < path ? (has_host ? "/" : "")
                                                        : base.substr(path, slash + 1 - path);
    joined += reference;
  }
  for (std::size_t at; (at = joined.find("/./")) != std::string::npos;) joined.erase(at, 2);
  for (std::size_t at; (at = joined.find("/../")) != std::string::npos;) {
    const std::size_t before = at == 0 ? std::string::npos : joined.rfind('/', at - 1);
    joined.erase(before == std::string::npos ? 0 : before,
                 before == std::string::npos ? at + 3 : at + 3 - before);
  }
  return base.substr(0, path) + joined;
}

// Which keywords hold schemas, and how.
constexpr std::array kSchemaKeywords = {"additionalItems",
                                        "additionalProperties",
                                        "contains",
                                        "contentSchema",
                                        "else",
                                        "if",
                                        "items",
                                        "not",
                                        "propertyNames",
                                        "then",
                                        "unevaluatedItems",
                                        "unevaluatedProperties"};
constexpr std::array kListKeywords = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array kMapKeywords = {
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"};

template <class Array>
bool is_in(const Array& array, std::string_view name) {
  return std::find(array.begin(), array.end(), name) != array.end();
}

}  // namespace

SchemaDocument::SchemaDocument(JsonValue root) : root_(std::move(root)) {
  if (root_.is_object()) {
    const JsonValue* const schema = root_.find("$schema");
    if (schema != nullptr && schema->is_string()) {
      const std::string& uri = schema->text;
      const auto has = [&](const char* part) { return uri.find(part) != std::string::npos; };
      if (has("draft-04")) draft_ = Draft::k4;
      if (has("draft-06")) draft_ = Draft::k6;
      if (has("draft-07")) draft_ = Draft::k7;
      if (has("2019-09")) draft_ = Draft::k2019;
      if (has("draft-03") || has("draft-02") || has("draft-01"))
        throw Refusal{unsupported("$schema at #: drafts before 4 are not supported")};
    }
  } else if (!root_.is_boolean()) {
    throw Refusal{invalid("the schema at # is neither an object nor a boolean")};
  }
  scan(add(root_, 0, "", ""));
}

SchemaId SchemaDocument::add(const JsonValue& value, SchemaId parent, std::string step,
                             std::string base) {
  const auto [at, added] = ids_.emplace(&value, static_cast<SchemaId>(places_.size()));
  if (added) places_.push_back({&value, parent, std::move(step), std::move(base)});
  return at->second;
}

void SchemaDocument::scan(SchemaId id) {
  const JsonValue& schema = *places_[id].value;
  if (!schema.is_object()) return;
  const bool old_reference = draft_ <= Draft::k7 && schema.find("$ref") != nullptr;
  const JsonValue* name = schema.find(draft_ == Draft::k4 ? "id" : "$id");
  if (name != nullptr && name->is_string() && !old_reference) {
    const std::size_t hash = name->text.find('#');
    const std::string uri = name->text.substr(0, hash);
    if (!uri.empty()) places_[id].base = resolve_uri(places_[id].base, uri);
    if (hash != std::string::npos && hash + 1 < name->text.size())
      uris_.emplace(places_[id].base + name->text.substr(hash), id);
    if (!uri.empty()) uris_.emplace(places_[id].base, id);
  }
  if (id == 0) uris_.emplace(places_[id].base, id);
  for (const char* const keyword : {"$anchor", "$dynamicAnchor"})
    if (const JsonValue* const anchor = schema.find(keyword);
        anchor != nullptr && anchor->is_string())
      uris_.emplace(places_[id].base + "#" + anchor->text, id);
  for (const auto& [keyword, value] : schema.members) {
    const bool is_map = is_in(kMapKeywords, keyword) && value.is_object();
    if (is_map) {
      for (const auto& [key, member] : value.members)
        if (member.is_object() || member.is_boolean()) scan(child(id, member, keyword, key));
    } else if (value.is_array() && is_in(kListKeywords, keyword)) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        scan(child(id, value.items[i], keyword, std::to_string(i)));
    } else if (value.is_object() && is_in(kSchemaKeywords, keyword)) {
      scan(child(id, value, keyword));
    }
  }
}

std::string SchemaDocument::path(SchemaId id) const {
  std::vector<SchemaId> way;
  for (; id != 0; id = places_[id].parent) way.push_back(id);
  std::string result = "#";
  for (auto it = way.rbegin(); it != way.rend(); ++it) {
    result += '/';
    result += places_[*it].step;
  }
  if (result.size() <= 300) return result;
  return fmt::format("{}...{}", result.substr(0, 140), result.substr(result.size() - 140));
}

SchemaId SchemaDocument::child(SchemaId parent, const JsonValue& value, std::string_view keyword,
                               std::string_view name) {
  const auto known = ids_.find(&value);
  if (known != ids_.end()) return known->second;
  std::string step = escape_pointer(keyword);
  if (!name.empty()) {
    step += '/';
    step += escape_pointer(name);
  }
  return add(value, parent, std::move(step), places_[parent].base);
}

void SchemaDocument::refuse(SchemaId id, std::string_view keyword, std::string_view reason,
                            ErrorKind kind) const {
  std::string message = fmt::format("{} at {}: {}", keyword, path(id), reason);
  // Keywords, names and patterns are the client's: they stay on one line.
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  throw Refusal{Error{kind, std::move(message)}};
}

SchemaId SchemaDocument::at_pointer(SchemaId root, std::string_view pointer, SchemaId from,
                                    const std::string& reference, const char* keyword) {
  const JsonValue* at = places_[root].value;
  SchemaId last = root;  // the innermost known schema on the way
  std::string step;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string name = unescape_pointer(pointer.substr(0, end));
    if (!step.empty()) step += '/';
    step += escape_pointer(name);
    pointer.remove_prefix(end);
    if (at->is_array()) {
      if (name.empty() || name.find_first_not_of("0123456789") != name.npos || name.size() > 6)
        at = nullptr;
      else
        at = std::stoul(name) < at->items.size() ? &at->items[std::stoul(name)] : nullptr;
    } else {
      at = at->find(name);
    }
    if (at == nullptr)
      refuse(from, keyword, fmt::format("\"{}\" names nothing in the schema", reference),
             ErrorKind::kInvalid);
    if (const auto known = ids_.find(at); known != ids_.end()) {
      last = known->second;
      step.clear();
    }
  }
  if (!at->is_object() && !at->is_boolean())
    refuse(from, keyword, fmt::format("\"{}\" is not a schema", reference), ErrorKind::kInvalid);
  if (step.empty()) return last;
  const SchemaId id = add(*at, last, step, places_[last].base);
  scan(id);
  return id;
}

SchemaId SchemaDocument::resolve(SchemaId from, const std::string& reference, const char* keyword) {
  const std::size_t hash = reference.find('#');
  const std::string uri = resolve_uri(places_[from].base, reference.substr(0, hash));
  const std::string fragment = hash == std::string::npos ? "" : reference.substr(hash + 1);
  const auto base = uris_.find(uri);
  if (base == uris_.end())
    refuse(from, keyword, fmt::format("\"{}\" is not in this document", reference));
  if (fragment.empty()) return base->second;
  if (fragment[0] == '/') return at_pointer(base->second, fragment, from, reference, keyword);
  const auto anchor = uris_.find(uri + "#" + fragment);
  if (anchor == uris_.end())
    refuse(from, keyword, fmt::format("\"{}\" names nothing in the schema", reference),
           ErrorKind::kInvalid);
  return anchor->second;
}

}  // namespace hearth::grammar
