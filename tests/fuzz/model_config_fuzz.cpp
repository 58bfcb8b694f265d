// The keys and tensors of a GGUF file as architectures read them: the configuration, which weights
// there must be, and whether they have the right shapes, those of experts included.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/weight_table.h"
#include "engine/weights/gguf_writer.h"
#include "engine/weights/model_file.h"
#include "runtime/rounding.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {
namespace {

// A file with everything that the architecture asks for, as small as it can be. Aborts if that is
// not accepted.
std::string file_of(const std::string& architecture, bool has_experts) {
  GgufKeys keys;
  const auto set = [&](const char* key, std::uint32_t value) {
    keys.add(architecture + "." + key, value);
  };
  keys.add("general.architecture", architecture);
  for (const char* key : {"embedding_length", "feed_forward_length", "vocab_size"}) set(key, 32);
  for (const char* key : {"attention.head_count", "attention.head_count_kv"}) set(key, 2);
  for (const char* key : {"attention.key_length", "attention.value_length"}) set(key, 16);
  set("block_count", 1);
  set("context_length", 64);
  if (has_experts) set("expert_count", 4);
  if (has_experts) set("expert_used_count", 2);
  keys.add(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  const std::string header = gguf_header(keys, {});
  const auto file = ModelFile::from_memory(std::as_bytes(std::span(header)), "seed.gguf");
  if (!file.ok()) std::abort();
  const auto made = find_architecture(**file);
  if (!made.ok()) std::abort();
  const auto config = (*made)->read_config(**file);
  if (!config.ok()) std::abort();
  std::vector<GgufTensorPlan> tensors;
  std::uint64_t bytes = 0;
  const WeightTable table = (*made)->weight_table(*config);
  for (const WeightSpec& spec : table.specs())
    for (const WeightPart& part : spec.parts) {
      const bool vector = spec.is_vector && spec.experts == 0;
      tensors.push_back({.name = part.tensor,
                         .format = spec.is_vector ? WeightFormat::kF32 : WeightFormat::kF16,
                         .matrices = std::max(spec.experts, 1u),
                         .rows = vector ? 1 : part.rows,
                         .cols = vector ? part.rows : spec.cols});
      bytes += round_up(tensors.back().bytes(), kGgufDefaultAlignment);
    }
  const std::string whole = gguf_header(keys, tensors) + std::string(bytes, '\0');
  const auto made_file = ModelFile::from_memory(std::as_bytes(std::span(whole)), "seed.gguf");
  if (!made_file.ok() || !table.check(**made_file).ok()) std::abort();
  return whole;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {file_of("llama", false), file_of("llama", true),    file_of("gemma3", false),
          file_of("phi3", false),  file_of("qwen3moe", true), file_of("gpt-oss", true)};
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const auto file =
      ModelFile::from_memory({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  const auto architecture = find_architecture(**file);
  if (!architecture.ok()) return 0;
  const auto config = (*architecture)->read_config(**file);
  if (!config.ok()) return 0;
  const WeightTable table = (*architecture)->weight_table(*config);
  if (!table.check(**file).ok()) return 0;
  volatile std::uint64_t bytes = 0;
  for (const WeightSpec& spec : table.specs())
    for (const SegmentPlan& segment : plan_segments(spec, **file))
      bytes = bytes + segment.device_bytes();
  return 0;
}
