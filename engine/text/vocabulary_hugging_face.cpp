// Reads a vocabulary from tokenizer.json and tokenizer_config.json. Supports two kinds of BPE:
// byte-level, and SentencePiece models written as merges with byte fallback.
#include <algorithm>

#include <fmt/format.h>

#include "engine/text/pretokenize.h"
#include "engine/text/tokenizer_json.h"
#include "engine/text/vocabulary_parts.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/metadata.h"

namespace hearth {
namespace {

using Json = nlohmann::json;

Error invalid_tokenizer(std::string message) {
  return {ErrorKind::kInvalid, "tokenizer.json: " + std::move(message)};
}
Error unsupported_tokenizer(std::string message) {
  return {ErrorKind::kUnsupported, "tokenizer.json: " + std::move(message)};
}

// Lists a component and those inside it, in order; a Sequence may contain another.
void flatten(const Json& component, const char* list, std::vector<const Json*>& parts, int depth) {
  if (component.is_null() || depth > 8) return;
  if (text_member(component, "type") != "Sequence") {
    parts.push_back(&component);
    return;
  }
  const Json& inner = member(component, list);
  if (inner.is_array())
    for (const Json& part : inner) flatten(part, list, parts, depth + 1);
}

std::vector<const Json*> components(const Json& root, const char* key, const char* list) {
  std::vector<const Json*> parts;
  flatten(member(root, key), list, parts, 0);
  return parts;
}

const Json* component_of_type(const std::vector<const Json*>& parts, std::string_view type) {
  for (const Json* part : parts)
    if (text_member(*part, "type") == type) return part;
  return nullptr;
}

// Gaps between ids become unused tokens; more gaps than tokens are an error.
Status place(Vocabulary& vocabulary, std::string text, std::uint64_t id, std::uint64_t limit) {
  if (id >= limit)
    return invalid_tokenizer(fmt::format("token {} has the id {}, far beyond the number of tokens",
                                         in_quotes(text), id));
  if (id >= vocabulary.tokens.size())
    vocabulary.tokens.resize(id + 1, {.text = {}, .kind = TokenKind::kUnused});
  VocabularyToken& token = vocabulary.tokens[id];
  if (!token.text.empty() && token.text != text)
    return invalid_tokenizer(fmt::format("tokens {} and {} have the same id {}",
                                         in_quotes(token.text), in_quotes(text), id));
  token.text = std::move(text);
  return {};
}

Status read_added_tokens(const Json& added, Vocabulary& vocabulary, std::uint64_t limit) {
  if (added.is_null()) return {};
  if (!added.is_array()) return invalid_tokenizer("added_tokens is not a list");
  for (const Json& entry : added) {
    const Json& id = member(entry, "id");
    const std::string text = text_member(entry, "content");
    if (!id.is_number_unsigned() || text.empty())
      return invalid_tokenizer("added_tokens has an entry without id or content");
    HEARTH_TRY(place(vocabulary, text, id.get<std::uint64_t>(), limit));
    VocabularyToken& token = vocabulary.tokens[id.get<std::uint64_t>()];
    token.kind =
        flag_member(entry, "special", false) ? TokenKind::kControl : TokenKind::kUserDefined;
    token.takes_space_before = flag_member(entry, "lstrip", false);
    token.takes_space_after = flag_member(entry, "rstrip", false);
  }
  return {};
}

Status read_tokens(TokenizerJson& file, Vocabulary& vocabulary) {
  if (file.vocabulary.empty()) return invalid_tokenizer("model.vocab is missing or empty");
  const Json& added = member(file.rest, "added_tokens");
  const std::uint64_t limit = 2 * (file.vocabulary.size() + added.size()) + 1024;
  vocabulary.tokens.reserve(file.vocabulary.size() + added.size());
  for (auto& [text, id] : file.vocabulary) {
    HEARTH_TRY(place(vocabulary, std::move(text), id, limit));
    vocabulary.tokens[id].kind = TokenKind::kNormal;
  }
  file.vocabulary = {};
  return read_added_tokens(added, vocabulary, limit);
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with(">");
}

// Byte-level: the list of patterns that split words must be a known one.
Status read_pretokenizer(const std::vector<const Json*>& parts, Vocabulary& vocabulary) {
  std::vector<std::string> patterns;
  for (const Json* part : parts) {
    const std::string type = text_member(*part, "type");
    if (type == "Split") {
      if (text_member(*part, "behavior") != "Isolated" && !flag_member(*part, "invert", false))
        return unsupported_tokenizer("pre_tokenizer Split does not isolate its matches");
      patterns.push_back(text_member(member(*part, "pattern"), "Regex"));
    } else if (type == "Digits") {
      patterns.emplace_back(flag_member(*part, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    } else if (type == "ByteLevel") {
      if (flag_member(*part, "add_prefix_space", false))
        return unsupported_tokenizer("pre_tokenizer ByteLevel adds a space before texts");
      if (flag_member(*part, "use_regex", true)) patterns.emplace_back(gpt2_pattern());
    } else {
      return unsupported_tokenizer(fmt::format("pre_tokenizer is of type {}", in_quotes(type)));
    }
  }
  vocabulary.pretokenizer = pretokenizer_name(patterns);
  if (!vocabulary.pretokenizer.empty()) return {};
  return unsupported_tokenizer(fmt::format(
      "pre_tokenizer has unknown patterns; the known pre-tokenizers are {}", pretokenizer_names()));
}

// SentencePiece written as merges: how spaces become U+2581 decides whether a space is added before
// a text.
Status read_sentence_piece(const std::vector<const Json*>& normalizers,
                           const std::vector<const Json*>& pretokenizers, const Json& model,
                           Vocabulary& vocabulary) {
  vocabulary.kind = VocabularyKind::kSentencePiece;
  vocabulary.add_space_prefix = component_of_type(normalizers, "Prepend") != nullptr;
  if (const Json* metaspace = component_of_type(pretokenizers, "Metaspace")) {
    const std::string scheme = text_member(*metaspace, "prepend_scheme");
    vocabulary.add_space_prefix =
        scheme.empty() ? flag_member(*metaspace, "add_prefix_space", true) : scheme != "never";
    vocabulary.space_prefix_once = scheme == "first";
    vocabulary.space_prefix_doubles = false;
  }
  if (flag_member(model, "byte_fallback", false))
    for (VocabularyToken& token : vocabulary.tokens)
      if (is_byte_token(token.text)) token.kind = TokenKind::kByte;
  if (vocabulary.merges.empty()) return invalid_tokenizer("model.merges is missing or empty");
  return {};
}

std::optional<std::uint32_t> id_of(const Vocabulary& vocabulary, std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto found = std::ranges::find(vocabulary.tokens, text, &VocabularyToken::text);
  if (found == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - vocabulary.tokens.begin());
}

// The id of the token that a key names, as a string or as {"content": string}.
std::optional<std::uint32_t> named_token(const Vocabulary& vocabulary, const Json& config,
                                         const char* key) {
  const Json& value = member(config, key);
  return id_of(vocabulary,
               value.is_object() ? text_member(value, "content") : text_member(config, key));
}

// TemplateProcessing lists the tokens around a text: [BOS, text, EOS].
void read_post_processor(const Json& root, Vocabulary& vocabulary) {
  const Json* processor =
      component_of_type(components(root, "post_processor", "processors"), "TemplateProcessing");
  if (!processor) return;
  const Json& single = member(*processor, "single");
  if (!single.is_array() || single.empty()) return;
  const auto first = id_of(vocabulary, text_member(member(single.front(), "SpecialToken"), "id"));
  if (first && !vocabulary.bos) vocabulary.bos = first;
  vocabulary.add_bos = first.has_value() && first == vocabulary.bos;
}

Result<std::optional<std::uint32_t>> id_from(const Metadata& metadata, const char* key,
                                             std::size_t tokens) {
  HEARTH_ASSIGN(const auto id, metadata.unsigned_integer(key));
  if (!id || *id >= tokens) return std::optional<std::uint32_t>();
  return std::optional<std::uint32_t>(static_cast<std::uint32_t>(*id));
}

// The template; if there is a list of named ones, the default.
std::string chat_template(const Json& config) {
  const Json& value = member(config, "chat_template");
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return {};
  for (const Json& entry : value)
    if (text_member(entry, "name") == "default") return text_member(entry, "template");
  return value.empty() ? std::string() : text_member(value.front(), "template");
}

Status read_rules(const Json& root, const Json& config, const Metadata& metadata,
                  Vocabulary& vocabulary) {
  vocabulary.bos = named_token(vocabulary, config, "bos_token");
  vocabulary.eos = named_token(vocabulary, config, "eos_token");
  vocabulary.unknown = named_token(vocabulary, member(root, "model"), "unk_token");
  const std::size_t count = vocabulary.tokens.size();
  if (!vocabulary.eos) {
    HEARTH_ASSIGN(vocabulary.eos, id_from(metadata, "tokenizer.ggml.eos_token_id", count));
  }
  // generation_config.json may list several.
  HEARTH_ASSIGN(const auto ends, metadata.numbers("tokenizer.ggml.eos_token_ids"));
  for (const double id : ends.value_or(std::vector<double>()))
    if (id >= 0 && id < static_cast<double>(count))
      vocabulary.end_of_generation.push_back(static_cast<std::uint32_t>(id));
  if (!vocabulary.bos && config.empty()) {
    HEARTH_ASSIGN(vocabulary.bos, id_from(metadata, "tokenizer.ggml.bos_token_id", count));
  }
  read_post_processor(root, vocabulary);
  vocabulary.add_bos = flag_member(config, "add_bos_token", vocabulary.add_bos);
  if (vocabulary.unknown) vocabulary.tokens[*vocabulary.unknown].kind = TokenKind::kUnknown;
  HEARTH_ASSIGN(const auto chat, metadata.text("tokenizer.chat_template"));
  vocabulary.chat_template = chat ? std::string(*chat) : chat_template(config);
  return {};
}

}  // namespace

Result<Vocabulary> read_hugging_face_vocabulary(std::string_view tokenizer,
                                                std::string_view tokenizer_config,
                                                const Metadata& metadata) {
  HEARTH_ASSIGN(TokenizerJson file, parse_tokenizer_json(tokenizer));
  Json config = Json::object();
  if (!tokenizer_config.empty()) {
    HEARTH_ASSIGN(config, parse_json_object(tokenizer_config, "tokenizer_config.json"));
  }
  const Json& model = member(file.rest, "model");
  const std::string type = text_member(model, "type");
  if (!type.empty() && type != "BPE")
    return unsupported_tokenizer(
        fmt::format("model.type is {}; supported is BPE", in_quotes(type)));
  Vocabulary vocabulary;
  HEARTH_TRY(read_tokens(file, vocabulary));
  vocabulary.merges = std::move(file.merges);
  vocabulary.ignore_merges = flag_member(model, "ignore_merges", false);
  const auto normalizers = components(file.rest, "normalizer", "normalizers");
  const auto pretokenizers = components(file.rest, "pre_tokenizer", "pretokenizers");
  vocabulary.normalize_nfc = component_of_type(normalizers, "NFC") != nullptr;
  if (component_of_type(pretokenizers, "ByteLevel")) {
    vocabulary.kind = VocabularyKind::kBytePair;
    HEARTH_TRY(read_pretokenizer(pretokenizers, vocabulary));
  } else if (component_of_type(normalizers, "Replace") ||
             component_of_type(pretokenizers, "Metaspace")) {
    HEARTH_TRY(read_sentence_piece(normalizers, pretokenizers, model, vocabulary));
  } else {
    return unsupported_tokenizer("it is neither byte-level BPE nor SentencePiece written as BPE");
  }
  HEARTH_TRY(read_rules(file.rest, config, metadata, vocabulary));
  find_end_of_generation(vocabulary);
  return vocabulary;
}

}  // namespace hearth
