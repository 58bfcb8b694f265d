#include "tools/grammar/grammar_check.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/grammar/matcher.h"

namespace hearth {
namespace {

using GrammarClock = std::chrono::steady_clock;

double microseconds_since(GrammarClock::time_point start) {
  return std::chrono::duration<double, std::micro>(GrammarClock::now() - start).count();
}

}  // namespace

TextVerdict check_text(const std::shared_ptr<const grammar::Grammar>& grammar,
                       const std::shared_ptr<const grammar::TokenTrie>& trie,
                       const Tokenizer& tokenizer, const std::string& text) {
  TextVerdict verdict;
  grammar::Matcher matcher(grammar, trie);
  std::vector<std::uint32_t> mask(trie->mask_words());
  const auto compute = [&] {
    const auto start = GrammarClock::now();
    matcher.mask(mask);
    verdict.mask_us.push_back(microseconds_since(start));
  };
  for (const std::uint32_t id : tokenizer.encode(text, {.add_bos = false})) {
    compute();
    const bool allowed = (mask[id / 32] >> (id % 32) & 1) != 0;
    if (!allowed || !matcher.accept(id)) {
      verdict.refused_token = tokenizer.piece(id);
      return verdict;
    }
    ++verdict.tokens;
    verdict.bytes = std::min(verdict.bytes + tokenizer.piece(id).size(), text.size());
  }
  compute();
  verdict.accepted = matcher.may_end();
  return verdict;
}

std::string explain_refusal(const TextVerdict& verdict, std::string_view text) {
  if (verdict.refused_token.empty()) return "the text ends too early";
  const auto quoted = [](std::string_view part) {
    return nlohmann::json(part).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const std::string may_not = quoted(verdict.refused_token) + " may not ";
  if (verdict.bytes == 0) return may_not + "come first";
  constexpr std::size_t kMostShown = 40;  // bytes
  std::size_t begin = verdict.bytes - std::min(verdict.bytes, kMostShown);
  // Not in the middle of a character.
  while (begin < verdict.bytes && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return fmt::format("{}follow {}{}", may_not, begin > 0 ? "..." : "",
                     quoted(text.substr(begin, verdict.bytes - begin)));
}

Result<SchemaCase> parse_schema_case(std::string_view line) {
  HEARTH_ASSIGN(const grammar::JsonValue parsed, grammar::parse_json(line));
  const grammar::JsonValue* const schema = parsed.find("schema");
  if (schema == nullptr) return invalid("expected an object with \"schema\"");
  SchemaCase result;
  if (const auto* const name = parsed.find("name"); name != nullptr) result.name = name->text;
  result.schema = grammar::to_text(*schema);
  if (const auto* const tests = parsed.find("tests"); tests != nullptr) {
    for (const grammar::JsonValue& test : tests->items) {
      const grammar::JsonValue* const data = test.find("data");
      if (data == nullptr) return invalid("expected \"data\" in each of \"tests\"");
      SchemaCase::Instance instance{.valid = {}, .text = grammar::to_text(*data)};
      if (const auto* const valid = test.find("valid"); valid != nullptr && valid->is_boolean())
        instance.valid = valid->kind == grammar::JsonValue::Kind::kTrue;
      result.instances.push_back(std::move(instance));
    }
  }
  return result;
}

SchemaVerdict check_schema(const SchemaCase& one, const grammar::SchemaOptions& options,
                           const std::shared_ptr<const grammar::TokenTrie>& trie,
                           const Tokenizer& tokenizer) {
  SchemaVerdict verdict{.name = one.name};
  const auto start = GrammarClock::now();
  const auto compiled = grammar::Grammar::compile_json_schema(one.schema, options);
  verdict.compile_us = microseconds_since(start);
  if (!compiled.ok()) {
    verdict.refused = compiled.error().message;
    return verdict;
  }
  verdict.right = true;
  for (const SchemaCase::Instance& instance : one.instances) {
    TextVerdict text = check_text(*compiled, trie, tokenizer, instance.text);
    verdict.accepted.push_back(text.accepted);
    verdict.mask_us.insert(verdict.mask_us.end(), text.mask_us.begin(), text.mask_us.end());
    if (!instance.valid || *instance.valid == text.accepted) continue;
    verdict.right = false;
    ++(text.accepted ? verdict.wrong : verdict.missed);
  }
  return verdict;
}

}  // namespace hearth
