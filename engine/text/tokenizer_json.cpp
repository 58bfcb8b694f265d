#include "engine/text/tokenizer_json.h"

#include <optional>

#include <fmt/format.h>

namespace hearth {
namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

// Collects the vocabulary and the merges while parsing: as a tree of JSON values they would take
// many times the size of the file.
class Collector {
 public:
  explicit Collector(TokenizerJson& result) : result_(result) {}

  bool operator()(int depth, Event event, Json& parsed) {
    if (event == Event::key) {
      if (depth == 1) section_ = parsed.get<std::string>(), part_.clear();
      if (depth == 2) part_ = parsed.get<std::string>();
      if (depth == 3) token_ = parsed.get<std::string>();
      if (depth == 3 && section_ == "model" && part_ == "merges")
        return wrong("model.merges is not a list");
      return true;
    }
    if (depth < 3 || section_ != "model") return true;
    if (part_ == "vocab") return take_token(depth, event, parsed);
    if (part_ == "merges") return take_merge(depth, event, parsed);
    return true;
  }

  const std::string& problem() const { return problem_; }

 private:
  bool take_token(int depth, Event event, const Json& parsed) {
    if (event != Event::value || depth != 3 || !token_ || !parsed.is_number_unsigned())
      return wrong("model.vocab has an entry that is not a token with an id");
    result_.vocabulary.emplace_back(std::move(*token_), parsed.get<std::uint64_t>());
    token_.reset();
    return false;
  }

  bool take_merge(int depth, Event event, Json& parsed) {
    if (depth == 3 && event == Event::array_start) {
      pair_.clear();
      return true;
    }
    if (depth == 3 && event == Event::array_end) {
      if (pair_.size() != 2) return wrong("model.merges has an entry that is not a pair");
      result_.merges.push_back(pair_[0] + ' ' + pair_[1]);
      return false;
    }
    if (event != Event::value || !parsed.is_string() || depth > 4)
      return wrong("model.merges has an entry that is not a pair of strings");
    auto& text = parsed.get_ref<std::string&>();
    if (depth == 4)
      pair_.push_back(std::move(text));
    else
      result_.merges.push_back(std::move(text));
    return false;
  }

  bool wrong(const char* what) {
    if (problem_.empty()) problem_ = what;
    return false;
  }

  TokenizerJson& result_;
  std::string section_, part_, problem_;
  std::optional<std::string> token_;  // the id follows
  std::vector<std::string> pair_;
};

template <class Callback>
Result<Json> parse_object(std::string_view text, const char* what, Callback callback) {
  try {
    Json json = Json::parse(text.begin(), text.end(), callback);
    if (json.is_object()) return json;
    return Error{ErrorKind::kInvalid, fmt::format("{} is not a JSON object", what)};
  } catch (const Json::parse_error& error) {
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} is not valid JSON from byte {} on", what, error.byte)};
  } catch (const Json::exception&) {
    return Error{ErrorKind::kInvalid, fmt::format("{} is not JSON that can be read", what)};
  }
}

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  TokenizerJson result;
  Collector collector(result);
  // Passed by reference, because the parser would copy it.
  const auto collect = [&](int depth, Event event, Json& parsed) {
    return collector(depth, event, parsed);
  };
  HEARTH_ASSIGN(result.rest,
                parse_object(text, "tokenizer.json", Json::parser_callback_t(collect)));
  if (!collector.problem().empty())
    return Error{ErrorKind::kInvalid, "tokenizer.json: " + collector.problem()};
  return result;
}

Result<nlohmann::json> parse_json_object(std::string_view text, const char* what) {
  return parse_object(text, what, nullptr);
}

const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string text_member(const nlohmann::json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

bool flag_member(const nlohmann::json& object, const char* key, bool otherwise) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace hearth
