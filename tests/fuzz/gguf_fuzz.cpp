// GGUF files: opens one and reads every value and tensor, as a loader would.
#include <array>

#include "engine/weights/gguf_writer.h"
#include "engine/weights/model_file.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {
namespace {

void look_at(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.all()) {
    (void)metadata.unsigned_integer(key);
    (void)metadata.number(key);
    (void)metadata.boolean(key);
    (void)metadata.text(key);
    (void)metadata.numbers(key);
    (void)metadata.booleans(key);
    (void)metadata.texts(key);
  }
}

// Reads the first and last byte of each tensor, so that one outside the file is noticed.
unsigned look_at(std::span<const ModelTensor> tensors) {
  unsigned sum = 0;
  for (const ModelTensor& tensor : tensors)
    sum += std::to_integer<unsigned>(tensor.bytes.front()) +
           std::to_integer<unsigned>(tensor.bytes.back());
  return sum;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  GgufKeys keys;
  keys.add("general.architecture", "llama");
  keys.add("llama.block_count", std::uint32_t{1});
  keys.add("llama.rope.freq_base", 10000.0f);
  keys.add("tokenizer.ggml.add_bos_token", true);
  constexpr std::array<std::string_view, 3> kTokens = {"<s>", "a", ""};
  constexpr std::array<float, 3> kScores = {0, -1, -2};
  constexpr std::array<std::int32_t, 3> kTypes = {3, 1, 1};
  keys.add("tokenizer.ggml.tokens", std::span<const std::string_view>(kTokens));
  keys.add("tokenizer.ggml.scores", std::span<const float>(kScores));
  keys.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(kTypes));
  const std::vector<GgufTensorPlan> tensors = {
      {.name = "a.weight", .format = WeightFormat::kQ8_0, .rows = 2, .cols = 32},
      {.name = "b.weight", .format = WeightFormat::kF32, .cols = 4}};
  const std::string no_tensors = gguf_header(keys, {});
  keys.add("general.alignment", std::uint32_t{8});
  return {no_tensors, gguf_header(keys, tensors, 8) + std::string(72 + 16, '\1'),
          gguf_header({}, {})};
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      hearth::ModelFile::from_memory({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  hearth::look_at((*file)->metadata());
  volatile unsigned sum = hearth::look_at((*file)->tensors());
  (void)sum;
  return 0;
}
