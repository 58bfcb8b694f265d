// tokenizer.json: reads it, builds a tokenizer, encodes and decodes with it.
#include "engine/text/tokenizer.h"
#include "engine/text/vocabulary_parts.h"
#include "engine/weights/metadata.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  return {
      R"({"added_tokens":[{"id":4,"content":"<s>","special":true},)"
      R"({"id":5,"content":"<t>","special":false,"rstrip":true}],"normalizer":{"type":"NFC"},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":)"
      R"(true},{"type":"ByteLevel","add_prefix_space":false}]},"post_processor":{"type":)"
      R"("TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}]},)"
      R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3},"merges":["a b"]}})",
      R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
      R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"model":{"type":"BPE",)"
      R"("byte_fallback":true,"unk_token":"<unk>","vocab":{"<unk>":0,"<0x0A>":1,"▁":2,"a":3,)"
      R"("▁a":4},"merges":[["▁","a"]]}})",
      R"({"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"first"},"model":{"vocab":{"a":0},)"
      R"("merges":["a a"]}})",
  };
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Also uses the bytes as tokenizer_config.json, which has fewer rules: any JSON is read.
  auto vocabulary = read_hugging_face_vocabulary(text, {}, Metadata{});
  if (!vocabulary.ok()) return 0;
  const auto with_config = read_hugging_face_vocabulary(text, text, Metadata{});
  if (with_config.ok() && with_config->tokens.size() != vocabulary->tokens.size()) __builtin_trap();
  const auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
  if (!tokenizer.ok()) return 0;
  const std::string sample =
      "ab aab <s> 12\n\xF0\x9F\x98\x80 \xFF " + std::string(text.substr(0, 256));
  const auto ids = (*tokenizer)->encode(sample, {.add_bos = true, .parse_special = true});
  for (const std::uint32_t id : ids)
    if (id >= (*tokenizer)->size()) __builtin_trap();
  (void)(*tokenizer)->decode(ids, true);
  return 0;
}
