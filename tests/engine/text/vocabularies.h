// Vocabularies for tests: the published ones in ../shared, and small ones made here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/text/tokenizer.h"
#include "engine/weights/model_file.h"
#include "tests/support/process.h"

namespace hearth::testing {

inline std::filesystem::path shared_vocabularies() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / ".." / "shared" / "vocab";
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A model file that exists only in memory.
class MadeUpFile : public ModelFile {
 public:
  explicit MadeUpFile(FileKind kind = FileKind::kGguf) : ModelFile(kind, "made-up") {}

  MadeUpFile& set(std::string key, MetadataValue value) {
    metadata_.set(std::move(key), std::move(value));
    return *this;
  }
  MadeUpFile& tokenizer(std::string json, std::optional<std::string> config = {}) {
    json_ = std::move(json);
    tokenizer_json_ = json_;
    if (config) config_ = std::move(*config), tokenizer_config_json_ = config_;
    return *this;
  }

 private:
  std::string json_, config_;
};

// The message of an error that must occur; checks that it is one line.
template <class T>
std::string error_of(const Result<T>& result) {
  if (result.ok()) return "(no error)";
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
  return result.error().message;
}

// A published vocabulary by the name of its test cases; null, so that the test is skipped, if
// ../shared is missing.
inline std::unique_ptr<Tokenizer> published(const std::string& name) {
  const auto folder = shared_vocabularies();
  const auto make = [&](const ModelFile& file) -> std::unique_ptr<Tokenizer> {
    auto vocabulary = read_vocabulary(file);
    EXPECT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    if (!vocabulary.ok()) return nullptr;
    auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
  };
  if (name != "llama-bpe") {
    const auto path = folder / ("ggml-vocab-" + name + ".gguf");
    if (!std::filesystem::exists(path)) return nullptr;
    auto file = ModelFile::open(path);
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.ok() ? make(**file) : nullptr;
  }
  const auto path = folder / "llama3" / "tokenizer.json.xz";
  if (!std::filesystem::exists(path)) return nullptr;
  const Finished unpacked = run_program({"xz", "-dc", path.string()});
  if (unpacked.exit_code != 0) return nullptr;
  MadeUpFile file(FileKind::kHuggingFace);
  file.tokenizer(unpacked.out, read_text(folder / "llama3" / "tokenizer_config.json"));
  return make(file);
}

struct TokenizerCase {
  std::string text;
  std::vector<std::uint32_t> ids;
};

inline std::vector<TokenizerCase> published_cases(const std::string& name) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  const auto stem = "ggml-vocab-" + name + ".gguf";
  const std::string texts = read_text(shared_vocabularies() / (stem + ".inp"));
  std::istringstream lines(read_text(shared_vocabularies() / (stem + ".out")));
  std::vector<TokenizerCase> cases;
  std::size_t at = 0;
  for (std::string line; std::getline(lines, line);) {
    std::size_t end = texts.find(separator, at);
    if (end == std::string::npos) end = texts.size();
    TokenizerCase one{texts.substr(std::min(at, texts.size()), end - at), {}};
    std::istringstream ids(line);
    for (std::uint32_t id = 0; ids >> id;) one.ids.push_back(id);
    cases.push_back(std::move(one));
    at = end + separator.size();
  }
  return cases;
}

// a, b, c, the space, merges "a b", "ab c", a control and an added token.
inline Vocabulary small_byte_pair() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kBytePair;
  vocabulary.pretokenizer = "gpt-2";
  for (const char* text : {"a", "b", "c", "\u0120", "ab", "abc", "\u0120a"})
    vocabulary.tokens.push_back({.text = text});
  vocabulary.tokens.push_back({.text = "<|im_end|>", .kind = TokenKind::kControl});
  vocabulary.tokens.push_back({.text = "<think>", .kind = TokenKind::kUserDefined});
  vocabulary.tokens.push_back({.text = "<unk>", .kind = TokenKind::kUnknown});
  vocabulary.merges = {"a b", "ab c", "\u0120 a"};
  vocabulary.unknown = 9;
  return vocabulary;
}

// <unk>, <s>, </s>, 256 bytes, then a few pieces with scores.
inline Vocabulary small_sentence_piece() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kSentencePiece;
  vocabulary.tokens.push_back({.text = "<unk>", .kind = TokenKind::kUnknown});
  vocabulary.tokens.push_back({.text = "<s>", .kind = TokenKind::kControl});
  vocabulary.tokens.push_back({.text = "</s>", .kind = TokenKind::kControl});
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    vocabulary.tokens.push_back(
        {.text = std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">",
         .kind = TokenKind::kByte});
  }
  float score = 0;
  for (const char* text : {"\u2581a", "ab", "\u2581ab", "a", "b", "\u2581", "c"})
    vocabulary.tokens.push_back({.text = text, .score = score--});
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.add_bos = true;
  return vocabulary;
}

}  // namespace hearth::testing
