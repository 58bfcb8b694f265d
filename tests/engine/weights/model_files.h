// Files for tests: small models made here, temporary folders, and the models in ../shared.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/weights/gguf_writer.h"
#include "engine/weights/model_file.h"

namespace hearth::test {

// A temporary folder, removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("hearth_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path shared_model() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "../shared/models/stories15M-Q8_0.gguf";
}

// The keys of a small model, one of each type.
inline GgufKeys small_keys() {
  static constexpr std::array<std::string_view, 4> kTokens = {"<unk>", "<s>", "", "a\nb"};
  static constexpr std::array<float, 4> kScores = {0, 0.5f, -1, -2.25f};
  static constexpr std::array<std::int32_t, 4> kTypes = {2, 3, -1, 1};
  GgufKeys keys;
  keys.add("general.architecture", "llama");
  keys.add("llama.block_count", std::uint32_t{2});
  keys.add("llama.context_length", std::uint64_t{4096});
  keys.add("llama.rope.freq_base", 10000.0f);
  keys.add("tokenizer.ggml.add_bos_token", true);
  keys.add("tokenizer.ggml.bos_token_id", std::int32_t{1});
  keys.add("tokenizer.ggml.tokens", std::span<const std::string_view>(kTokens));
  keys.add("tokenizer.ggml.scores", std::span<const float>(kScores));
  keys.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(kTypes));
  return keys;
}

inline std::vector<GgufTensorPlan> small_tensors() {
  return {{.name = "token_embd.weight", .format = WeightFormat::kQ8_0, .rows = 4, .cols = 64},
          {.name = "blk.0.ffn_up.weight", .format = WeightFormat::kQ4K, .rows = 3, .cols = 256},
          {.name = "output_norm.weight", .format = WeightFormat::kF32, .cols = 5},
          {.name = "experts.weight",
           .format = WeightFormat::kF16,
           .matrices = 3,
           .rows = 6,
           .cols = 2}};
}

// Byte i of tensor t's data is (t + i) % 251.
inline std::string tensor_data(std::span<const GgufTensorPlan> tensors, std::uint64_t alignment) {
  std::string data;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
    for (std::uint64_t i = 0; i < tensors[t].bytes(); ++i) data += static_cast<char>((t + i) % 251);
  }
  return data;
}

inline std::string small_gguf(const GgufKeys& keys = small_keys(),
                              const std::vector<GgufTensorPlan>& tensors = small_tensors(),
                              std::uint64_t alignment = kGgufDefaultAlignment) {
  return gguf_header(keys, tensors, alignment) + tensor_data(tensors, alignment);
}

inline std::string safetensors(std::string_view header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i % 251);
  return file;
}

// The error of opening a file; empty if there is none. Checks that it is one line that begins with
// the file's name.
inline std::string problem_of(const Result<std::unique_ptr<ModelFile>>& file) {
  if (file.ok()) return {};
  const std::string& message = file.error().message;
  EXPECT_FALSE(message.empty());
  EXPECT_LT(message.size(), 600u);
  for (const char c : message) EXPECT_TRUE(c >= ' ') << message;
  return message;
}

inline std::string problem_of(std::string_view gguf) {
  return problem_of(ModelFile::from_memory(bytes_of(gguf), "x.gguf"));
}

}  // namespace hearth::test
