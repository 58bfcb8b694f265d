// Vocabularies from both kinds of files, and error messages for bad ones.
#include "engine/text/vocabulary.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Texts = std::vector<std::string_view>;

class Gguf : public MadeUpFile {
 public:
  explicit Gguf(std::string_view model) {
    set("tokenizer.ggml.model", std::string(model));
    set("tokenizer.ggml.tokens", Texts{"<unk>", "<s>", "</s>", "a", "b", "ab", "<|im_end|>"});
    set("tokenizer.ggml.token_type", std::vector<std::int64_t>{2, 3, 3, 1, 1, 1, 4});
    if (model != "gpt2") return;
    set("tokenizer.ggml.merges", Texts{"a b"}).set("tokenizer.ggml.pre", std::string("gpt-2"));
  }
};

TEST(GgufVocabulary, SentencePieceWithItsDefaults) {
  const auto vocabulary = read_vocabulary(Gguf("llama"));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kSentencePiece);
  EXPECT_EQ(vocabulary->unknown, 0u);
  EXPECT_EQ(vocabulary->bos, 1u);
  EXPECT_EQ(vocabulary->eos, 2u);
  EXPECT_TRUE(vocabulary->add_bos);
  EXPECT_TRUE(vocabulary->add_space_prefix);
  EXPECT_EQ(vocabulary->tokens[6].kind, TokenKind::kControl) << "it ends a turn";
  EXPECT_THAT(vocabulary->end_of_generation, ElementsAre(2, 6));
}

TEST(GgufVocabulary, EndOfTurnTokensMayBeDeclaredNormal) {
  Gguf file("llama");
  file.set("tokenizer.ggml.token_type", std::vector<std::int64_t>{2, 3, 1, 1, 1, 1, 1})
      .set("tokenizer.ggml.eos_token_id", std::uint64_t{1})
      .set("tokenizer.ggml.padding_token_id", std::uint64_t{7});  // unused
  const auto vocabulary = read_vocabulary(file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_THAT(vocabulary->end_of_generation, ElementsAre(1, 6));
  EXPECT_EQ(vocabulary->tokens[6].kind, TokenKind::kControl);
  EXPECT_EQ(vocabulary->tokens[2].kind, TokenKind::kNormal) << "</s> may be a piece of HTML";
}

TEST(GgufVocabulary, TheFileOverridesDefaults) {
  Gguf file("llama");
  file.set("tokenizer.ggml.bos_token_id", std::uint64_t{3})
      .set("tokenizer.ggml.eot_token_id", std::uint64_t{5})
      .set("tokenizer.ggml.add_bos_token", false)
      .set("tokenizer.ggml.add_eos_token", true)
      .set("tokenizer.ggml.add_space_prefix", false)
      .set("tokenizer.ggml.scores", std::vector<double>{0, 0, 0, -1, -2, -3, 0})
      .set("tokenizer.chat_template", std::string("{{ messages }}"));
  const auto vocabulary = read_vocabulary(file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->bos, 3u);
  EXPECT_FALSE(vocabulary->add_bos);
  EXPECT_FALSE(vocabulary->add_space_prefix);
  EXPECT_EQ(vocabulary->tokens[4].score, -2);
  EXPECT_EQ(vocabulary->chat_template, "{{ messages }}");
  EXPECT_THAT(vocabulary->end_of_generation, ElementsAre(2, 5, 6));
}

TEST(GgufVocabulary, BytePair) {
  const auto vocabulary = read_vocabulary(Gguf("gpt2"));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kBytePair);
  EXPECT_EQ(vocabulary->pretokenizer, "gpt-2");
  EXPECT_FALSE(vocabulary->add_bos);
  EXPECT_FALSE(vocabulary->ignore_merges);
  Gguf llama3("gpt2");
  llama3.set("tokenizer.ggml.pre", std::string("llama-bpe"));
  EXPECT_TRUE(read_vocabulary(llama3)->ignore_merges);
  EXPECT_TRUE(read_vocabulary(llama3)->add_bos);
}

TEST(GgufVocabulary, Phi3TokensTakeTheSpaceAfterThem) {
  Gguf file("llama");
  EXPECT_FALSE(read_vocabulary(file)->tokens[6].takes_space_after);
  file.set("general.architecture", std::string("phi3"));
  EXPECT_TRUE(read_vocabulary(file)->tokens[6].takes_space_after);
}

TEST(GgufVocabulary, AMissingVocabularyIsNoError) {
  for (const char* model : {"no_vocab", "none"}) {
    MadeUpFile file;
    file.set("tokenizer.ggml.model", std::string(model));
    EXPECT_EQ(read_vocabulary(file)->kind, VocabularyKind::kNone);
  }
  EXPECT_EQ(read_vocabulary(MadeUpFile())->kind, VocabularyKind::kNone);
  EXPECT_EQ(read_vocabulary(MadeUpFile(FileKind::kHuggingFace))->kind, VocabularyKind::kNone);
}

TEST(GgufVocabulary, ErrorsNameTheProblem) {
  const auto broken = [](const char* key, MetadataValue value, const char* model = "gpt2") {
    Gguf file(model);
    file.set(std::string("tokenizer.ggml.") + key, std::move(value));
    return error_of(read_vocabulary(file));
  };
  EXPECT_THAT(broken("model", std::string("rwkv")), HasSubstr("'rwkv'; supported are"));
  EXPECT_THAT(broken("tokens", std::uint64_t{5}), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(broken("scores", std::vector<double>{1}), HasSubstr("scores has 1 entries for 7"));
  EXPECT_THAT(broken("scores", std::vector<double>(7, std::nan(""))), HasSubstr("scores"));
  EXPECT_THAT(broken("token_type", std::vector<std::int64_t>{1}), HasSubstr("token_type has 1"));
  EXPECT_THAT(broken("token_type", std::vector<std::int64_t>(7, 9)), HasSubstr("has the value 9"));
  EXPECT_THAT(broken("eos_token_id", std::uint64_t{7}), HasSubstr("eos_token_id is 7"));
  EXPECT_THAT(broken("eot_token_id", std::uint64_t{1} << 40), HasSubstr("eot_token_id"));
  EXPECT_THAT(broken("merges", std::string("a b")), HasSubstr("merges"));
  EXPECT_THAT(broken("add_bos_token", std::string("yes")), HasSubstr("add_bos_token"));
  EXPECT_THAT(broken("model", std::string("rwkv")), HasSubstr("made-up: "));
  MadeUpFile none;
  none.set("tokenizer.ggml.model", std::string("gpt2"));
  EXPECT_THAT(error_of(read_vocabulary(none)), HasSubstr("tokens is missing"));
  none.set("tokenizer.ggml.tokens", Texts{"a"});
  EXPECT_THAT(error_of(read_vocabulary(none)), HasSubstr("merges is missing"));
}

Json byte_level() {
  return Json::parse(R"({
    "added_tokens": [
      {"id": 4, "content": "<|begin|>", "special": true},
      {"id": 5, "content": "<|im_end|>", "special": true},
      {"id": 6, "content": "<tool>", "special": false, "rstrip": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}}]}]},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", "ab b"]}
  })");
}

Result<Vocabulary> read_json(const Json& tokenizer, const Json& config = Json::object()) {
  MadeUpFile file(FileKind::kHuggingFace);
  file.tokenizer(tokenizer.dump(), config.dump());
  return read_vocabulary(file);
}

TEST(HuggingFaceVocabulary, ByteLevel) {
  const auto vocabulary = read_json(
      byte_level(), {{"bos_token", {{"content", "<|begin|>"}}}, {"eos_token", "<|im_end|>"}});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kBytePair);
  EXPECT_EQ(vocabulary->pretokenizer, "qwen2");
  EXPECT_THAT(vocabulary->merges, ElementsAre("a b", "ab b"));
  EXPECT_EQ(vocabulary->bos, 4u);
  EXPECT_EQ(vocabulary->eos, 5u);
  EXPECT_TRUE(vocabulary->add_bos);
  EXPECT_TRUE(vocabulary->normalize_nfc);
  EXPECT_EQ(vocabulary->tokens[4].kind, TokenKind::kControl);
  EXPECT_EQ(vocabulary->tokens[6].kind, TokenKind::kUserDefined);
  EXPECT_TRUE(vocabulary->tokens[6].takes_space_after);
  EXPECT_THAT(vocabulary->end_of_generation, ElementsAre(5));
  EXPECT_TRUE(Tokenizer::create(*vocabulary).ok());
  EXPECT_FALSE(read_json(byte_level(), {{"add_bos_token", false}})->add_bos);
}

TEST(HuggingFaceVocabulary, MergesMayBePairs) {
  Json json = byte_level();
  json["model"]["merges"] = Json::parse(R"([["a", "b"], ["ab", "b"]])");
  EXPECT_THAT(read_json(json)->merges, ElementsAre("a b", "ab b"));
}

TEST(HuggingFaceVocabulary, PretokenizersAreRecognizedByTheirPatterns) {
  Json json = byte_level();
  json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  EXPECT_EQ(read_json(json)->pretokenizer, "gpt-2");
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, {{"type", "ByteLevel"}}}}};
  EXPECT_EQ(read_json(json)->pretokenizer, "starcoder");
  json["pre_tokenizer"]["pretokenizers"][0] = {
      {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", "x+"}}}};
  EXPECT_THAT(error_of(read_json(json)), HasSubstr("unknown patterns"));
  json["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Klingon"}};
  EXPECT_THAT(error_of(read_json(json)), HasSubstr("Klingon"));
}

Json sentence_piece() {
  return Json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                     {"id": 1, "content": "<s>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
      "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "▁": 3, "a": 4, "b": 5, "▁a": 6, "ab": 7},
      "merges": ["a b", "▁ a"]}
  })");
}

TEST(HuggingFaceVocabulary, SentencePieceAsMerges) {
  const auto vocabulary =
      read_json(sentence_piece(), {{"bos_token", "<s>"}, {"add_bos_token", true}});
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kSentencePiece);
  EXPECT_EQ(vocabulary->tokens[2].kind, TokenKind::kByte);
  EXPECT_EQ(vocabulary->tokens[0].kind, TokenKind::kUnknown);
  EXPECT_TRUE(vocabulary->add_space_prefix);
  const auto tokenizer = Tokenizer::create(*vocabulary);
  ASSERT_TRUE(tokenizer.ok());
  // "a b" is the better merge, although "▁ a" comes first in the text.
  EXPECT_THAT((*tokenizer)->encode("ab\n"), ElementsAre(1, 3, 7, 2));
}

TEST(HuggingFaceVocabulary, WhereTheSpaceGoes) {
  Json gemma = sentence_piece();
  gemma["normalizer"] = gemma["normalizer"]["normalizers"][1];
  EXPECT_FALSE(read_json(gemma)->add_space_prefix);
  Json mistral = sentence_piece();
  mistral["normalizer"] = nullptr;
  mistral["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "first"}};
  EXPECT_TRUE(read_json(mistral)->add_space_prefix);
  EXPECT_TRUE(read_json(mistral)->space_prefix_once);
  EXPECT_FALSE(read_json(mistral)->space_prefix_doubles);
  mistral["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_FALSE(read_json(mistral)->space_prefix_once);
  EXPECT_FALSE(read_json(mistral)->space_prefix_doubles);
  mistral["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_FALSE(read_json(mistral)->add_space_prefix);
}

TEST(HuggingFaceVocabulary, AllListedEndTokensCount) {
  MadeUpFile file(FileKind::kHuggingFace);
  file.tokenizer(byte_level().dump(), R"({"eos_token": "<|im_end|>"})");
  file.set("tokenizer.ggml.eos_token_ids", std::vector<std::uint64_t>{5, 3, 1000});
  const auto vocabulary = read_vocabulary(file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_THAT(vocabulary->end_of_generation, ElementsAre(3, 5));
}

TEST(HuggingFaceVocabulary, ChatTemplateAsTextOrList) {
  const auto chat = [](const Json& value) {
    return read_json(byte_level(), {{"chat_template", value}})->chat_template;
  };
  EXPECT_EQ(chat("one"), "one");
  EXPECT_EQ(
      chat({{{"name", "tool"}, {"template", "two"}}, {{"name", "default"}, {"template", "three"}}}),
      "three");
  EXPECT_EQ(chat(nullptr), "");
}

TEST(HuggingFaceVocabulary, ErrorsNameTheProblem) {
  const auto broken = [](auto change) {
    Json json = byte_level();
    change(json);
    return error_of(read_json(json));
  };
  EXPECT_THAT(broken([](Json& j) { j["model"]["type"] = "Unigram"; }), HasSubstr("'Unigram'"));
  EXPECT_THAT(broken([](Json& j) { j["model"].erase("vocab"); }), HasSubstr("model.vocab"));
  EXPECT_THAT(broken([](Json& j) { j["model"] = 5; }), HasSubstr("model.vocab"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["vocab"]["a"] = -1; }), HasSubstr("model.vocab"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["vocab"]["a"] = "x"; }), HasSubstr("model.vocab"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["vocab"]["a"] = 1; }), HasSubstr("the same id 1"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["vocab"]["a"] = 1ull << 62; }),
              HasSubstr("far beyond"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["vocab"] = {1, 2}; }), HasSubstr("model.vocab"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["merges"] = {5}; }), HasSubstr("model.merges"));
  EXPECT_THAT(broken([](Json& j) {
                j["model"]["merges"] = {{"a", "b"}};
              }),
              HasSubstr("not a list"));
  EXPECT_THAT(broken([](Json& j) { j["model"]["merges"] = Json::parse(R"([["a"]])"); }),
              HasSubstr("not a pair"));
  EXPECT_THAT(broken([](Json& j) { j["added_tokens"] = {5}; }), HasSubstr("added_tokens"));
  EXPECT_THAT(broken([](Json& j) { j["added_tokens"][0]["id"] = 0; }), HasSubstr("the same id 0"));
  EXPECT_THAT(broken([](Json& j) { j["pre_tokenizer"] = nullptr; }), HasSubstr("neither"));
  MadeUpFile cut(FileKind::kHuggingFace);
  cut.tokenizer(byte_level().dump().substr(0, 100));
  EXPECT_THAT(error_of(read_vocabulary(cut)),
              HasSubstr("tokenizer.json is not valid JSON from byte 101 on"));
  MadeUpFile list(FileKind::kHuggingFace);
  list.tokenizer("[1]");
  EXPECT_THAT(error_of(read_vocabulary(list)), HasSubstr("not a JSON object"));
  MadeUpFile config(FileKind::kHuggingFace);
  config.tokenizer(byte_level().dump(), "{");
  EXPECT_THAT(error_of(read_vocabulary(config)), HasSubstr("tokenizer_config.json"));
}

}  // namespace
}  // namespace hearth::testing
