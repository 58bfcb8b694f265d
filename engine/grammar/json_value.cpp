#include "engine/grammar/json_value.h"

#include <nlohmann/json.hpp>

#include "engine/grammar/decimal.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kDeepest = 500;
constexpr std::size_t kMostValues = 2'000'000;

// Builds a JsonValue from nlohmann's parser events.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonValue root;
  std::string error;

  bool null() override { return add({.kind = JsonValue::Kind::kNull}); }
  bool boolean(bool value) override {
    return add({.kind = value ? JsonValue::Kind::kTrue : JsonValue::Kind::kFalse});
  }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override {
    return add({.kind = JsonValue::Kind::kString, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({.kind = JsonValue::Kind::kObject}); }
  bool start_array(std::size_t) override { return open({.kind = JsonValue::Kind::kArray}); }
  bool key(string_t& name) override {
    names_.back() = std::move(name);
    return true;
  }
  bool end_object() override {
    JsonValue& object = *open_.back();
    // The last of several equal names counts, as parsers have it.
    std::unordered_map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < object.members.size(); ++i) last[object.members[i].name] = i;
    if (last.size() != object.members.size()) {
      std::vector<JsonValue::Member> kept;
      for (std::size_t i = 0; i < object.members.size(); ++i)
        if (last[object.members[i].name] == i) kept.push_back(std::move(object.members[i]));
      object.members = std::move(kept);
    }
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) override {
    error = e.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::size_t at = error.find("parse error at ");
    if (at != std::string::npos) error.erase(0, at + 15);
    for (char& c : error)
      if (c == '\n' || c == '\r') c = ' ';
    return false;
  }

 private:
  bool number(std::string text) {
    return add({.kind = JsonValue::Kind::kNumber, .text = std::move(text)});
  }
  JsonValue* place(JsonValue value) {
    if (++count_ > kMostValues) {
      error = "more values than a schema may have";
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    JsonValue& parent = *open_.back();
    if (parent.is_array()) return &parent.items.emplace_back(std::move(value));
    return &parent.members.emplace_back(std::move(names_.back()), std::move(value)).value;
  }
  bool add(JsonValue value) { return place(std::move(value)) != nullptr; }
  bool open(JsonValue value) {
    if (open_.size() >= kDeepest) {
      error = "nested more than 500 levels deep";
      return false;
    }
    JsonValue* const placed = place(std::move(value));
    if (placed == nullptr) return false;
    open_.push_back(placed);
    names_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  // Pointers into vectors that do not grow while these are open: only the innermost one does.
  std::vector<JsonValue*> open_;
  std::vector<std::string> names_;
  std::size_t count_ = 0;
};

void write_json(const JsonValue& value, std::string& out) {
  const auto quote = [&](const std::string& text) {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kFalse:
      out += "false";
      break;
    case JsonValue::Kind::kTrue:
      out += "true";
      break;
    case JsonValue::Kind::kNumber:
      out += value.text;
      break;
    case JsonValue::Kind::kString:
      quote(value.text);
      break;
    case JsonValue::Kind::kArray: {
      char before = '[';
      for (const JsonValue& item : value.items) {
        out += before;
        write_json(item, out);
        before = ',';
      }
      out += value.items.empty() ? "[]" : "]";
      break;
    }
    case JsonValue::Kind::kObject: {
      char before = '{';
      for (const auto& [name, member] : value.members) {
        out += before;
        quote(name);
        out += ':';
        write_json(member, out);
        before = ',';
      }
      out += value.members.empty() ? "{}" : "}";
      break;
    }
  }
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const Member& member : members)
    if (member.name == name) return &member.value;
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text, &builder)) {
    return invalid(builder.error.empty() ? std::string("not JSON")
                                         : "not usable JSON: " + builder.error);
  }
  return std::move(builder.root);
}

std::string to_text(const JsonValue& value) {
  std::string result;
  write_json(value, result);
  return result;
}

bool equal(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonValue::Kind::kNumber: {
      const auto x = parse_decimal(a.text), y = parse_decimal(b.text);
      return x && y ? *x == *y : a.text == b.text;
    }
    case JsonValue::Kind::kString:
      return a.text == b.text;
    case JsonValue::Kind::kArray: {
      if (a.items.size() != b.items.size()) return false;
      for (std::size_t i = 0; i < a.items.size(); ++i)
        if (!equal(a.items[i], b.items[i])) return false;
      return true;
    }
    case JsonValue::Kind::kObject: {
      if (a.members.size() != b.members.size()) return false;
      for (const auto& [name, value] : a.members) {
        const JsonValue* const other = b.find(name);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    default:
      return true;
  }
}

}  // namespace hearth::grammar
