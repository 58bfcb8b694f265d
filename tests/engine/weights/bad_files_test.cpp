// Truncated files, files with flipped bits and files with false headers: each is opened or refused
// with a one-line message, and opening takes at most twice the file's size in memory. This is a
// program of its own because it replaces the allocator to count memory.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "engine/weights/safetensors.h"
#include "tests/engine/weights/model_files.h"

namespace {

std::atomic<std::size_t> live_bytes = 0, peak_bytes = 0;

void* counted_new(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t live = live_bytes += malloc_usable_size(memory);
  std::size_t peak = peak_bytes;
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void counted_delete(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted_new(size); }
void* operator new[](std::size_t size) { return counted_new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted_new(size); }
void operator delete(void* memory) noexcept { counted_delete(memory); }
void operator delete[](void* memory) noexcept { counted_delete(memory); }
void operator delete(void* memory, std::size_t) noexcept { counted_delete(memory); }
void operator delete[](void* memory, std::size_t) noexcept { counted_delete(memory); }

namespace hearth {
namespace {

using test::bytes_of;
using test::small_gguf;
using test::small_keys;
using test::small_tensors;
using ::testing::HasSubstr;

// Memory for a header of a few keys, however small the file.
constexpr std::size_t kSmallChange = 32 * 1024;

// The peak memory use during the lifetime of this object, beyond what was in use before.
class PeakMemory {
 public:
  PeakMemory() : before_(live_bytes) { peak_bytes = before_; }
  std::size_t bytes() const { return peak_bytes - before_; }

 private:
  std::size_t before_;
};

// Opens a file in memory. Returns what is wrong with it, or an empty string.
std::string opened(std::string_view gguf) {
  const PeakMemory memory;
  auto file = ModelFile::from_memory(bytes_of(gguf), "x.gguf");
  const std::size_t peak = memory.bytes();
  EXPECT_LE(peak, 2 * gguf.size() + kSmallChange);
  if (file.ok()) {
    for (const ModelTensor& tensor : (*file)->tensors()) {
      EXPECT_GE(tensor.bytes.data(), bytes_of(gguf).data());
      EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), bytes_of(gguf).data() + gguf.size());
    }
  }
  return test::problem_of(file);
}

void put(std::string& file, std::size_t at, std::uint64_t value, std::size_t bytes = 8) {
  std::memcpy(file.data() + at, &value, bytes);
}

// The offset of a text in the file, for changing the bytes next to it.
std::size_t after(const std::string& file, std::string_view text) {
  const std::size_t at = file.find(text);
  EXPECT_NE(at, std::string::npos);
  return at + text.size();
}

// Truncates the file at every fiftieth of its length. Everything but padding is needed, so every
// cut must be noticed.
void cut_off(const std::string& file) {
  for (std::size_t i = 0; i < 50; ++i) {
    const std::string_view cut = std::string_view(file).substr(0, file.size() * i / 50);
    EXPECT_THAT(opened(cut), HasSubstr("x.gguf: ")) << i << "/50";
  }
}

// Flips single bits, mostly in the first `header` bytes; returns how many files stayed valid.
int flip_bits(std::string file, std::size_t header, int flips) {
  std::mt19937 random(20240704);
  int valid = 0;
  for (int i = 0; i < flips; ++i) {
    const std::size_t range = i % 10 == 9 ? file.size() : header;
    const std::size_t at = random() % range;
    const char before = file[at];
    file[at] = static_cast<char>(random());
    valid += opened(file).empty() ? 1 : 0;
    file[at] = before;
  }
  return valid;
}

TEST(BadFiles, CutOff) { cut_off(small_gguf()); }

TEST(BadFiles, AFileThatIsCutOffSaysHowMuchIsMissing) {
  const std::string file = small_gguf();
  const std::size_t header = gguf_header(small_keys(), small_tensors()).size();
  // Padding after the last tensor may be missing.
  std::size_t whole = file.size();
  while (opened(std::string_view(file).substr(0, whole - 1)).empty()) --whole;
  for (const std::size_t missing : {std::size_t{1}, std::size_t{100}, whole - header}) {
    const std::string problem = opened(std::string_view(file).substr(0, whole - missing));
    EXPECT_THAT(problem, HasSubstr("the file is cut off: " + std::to_string(missing) + " byte"));
    EXPECT_THAT(problem, HasSubstr("download may be incomplete"));
  }
  // Within the header nobody knows how long the file should be.
  EXPECT_THAT(opened(std::string_view(file).substr(0, header / 2)), HasSubstr("at least "));
}

TEST(BadFiles, CutOffSharedModel) {
  if (!std::filesystem::exists(test::shared_model())) GTEST_SKIP() << "no shared model here";
  cut_off(test::read_file(test::shared_model()));
}

TEST(BadFiles, TenThousandChangedBytes) {
  const std::string file = small_gguf();
  const int valid = flip_bits(file, gguf_header(small_keys(), small_tensors()).size(), 10000);
  // A change inside a name or a number gives another valid file; a changed length must not.
  EXPECT_GT(valid, 1000);
  EXPECT_LT(valid, 9000);
}

TEST(BadFiles, ChangedBytesOfTheSharedModel) {
  if (!std::filesystem::exists(test::shared_model())) GTEST_SKIP() << "no shared model here";
  // The keys before the vocabulary, where nearly every byte matters.
  EXPECT_GT(flip_bits(test::read_file(test::shared_model()), 1024, 200), 0);
}

TEST(BadFiles, ChangedTensorEntriesOfTheSharedModel) {
  if (!std::filesystem::exists(test::shared_model())) GTEST_SKIP() << "no shared model here";
  std::string file = test::read_file(test::shared_model());
  const std::size_t first = file.rfind("blk.0.attn_q.weight", 2 << 20);
  ASSERT_NE(first, std::string::npos);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::size_t at = first + random() % 1024;
    const char before = file[at];
    file[at] = static_cast<char>(random());
    opened(file);
    file[at] = before;
  }
}

TEST(BadFiles, NotGguf) {
  EXPECT_THAT(opened(""), HasSubstr("x.gguf: the file is empty"));
  EXPECT_THAT(opened("GG"), HasSubstr("byte 0: the magic number"));
  EXPECT_THAT(opened("<!DOCTYPE html>\n<html>"),
              HasSubstr("not a GGUF file: it begins with '<!DO'"));
  EXPECT_THAT(opened(std::string("\n\0\x01\xff", 4)), HasSubstr("'\\x0a\\x00\\x01\\xff'"));
}

TEST(BadFiles, OtherVersions) {
  std::string file = small_gguf();
  put(file, 4, 1, 4);
  EXPECT_THAT(opened(file), HasSubstr("GGUF version 1; versions 2 and 3 are supported"));
  put(file, 4, 4, 4);
  EXPECT_THAT(opened(file), HasSubstr("GGUF version 4"));
  put(file, 4, 0x03000000, 4);
  EXPECT_THAT(opened(file), HasSubstr("big-endian"));
}

TEST(BadFiles, CountsOf2To63) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  const std::string good = small_gguf();
  const auto with = [&](std::size_t at, std::uint64_t value) {
    std::string file = good;
    put(file, at, value);
    return opened(file);
  };
  for (const std::uint64_t huge : {kHuge, kHuge - 1, ~std::uint64_t{0}, kHuge >> 2}) {
    EXPECT_THAT(with(8, huge), HasSubstr(" tensors, but only "));
    EXPECT_THAT(with(16, huge), HasSubstr(" keys, but only "));
    EXPECT_THAT(with(24, huge), HasSubstr("byte 32: the name of a key takes"));
    EXPECT_THAT(with(after(good, "general.architecture") + 4, huge),
                HasSubstr("key 'general.architecture' takes"));
    for (const std::string_view array : {"tokenizer.ggml.tokens", "tokenizer.ggml.scores"})
      EXPECT_THAT(with(after(good, array) + 8, huge), HasSubstr("elements, but only"));
    // A tensor's width and height: too many elements, or a width that no block divides.
    EXPECT_THAT(with(after(good, "token_embd.weight") + 4, huge),
                HasSubstr("tensor 'token_embd.weight' "));
    EXPECT_THAT(with(after(good, "token_embd.weight") + 12, huge),
                HasSubstr("tensor 'token_embd.weight' "));
  }
}

TEST(BadFiles, MoreKeysThanModelsHave) {
  GgufKeys keys;
  for (int i = 0; i < 1025; ++i) keys.add("k" + std::to_string(i), true);
  EXPECT_THAT(opened(gguf_header(keys, {})), HasSubstr("1025 keys; no model has over 1024"));
}

TEST(BadFiles, BrokenKeys) {
  GgufKeys twice = small_keys();
  twice.add("llama.block_count", std::uint32_t{2});
  EXPECT_THAT(opened(small_gguf(twice)), HasSubstr("key 'llama.block_count' occurs twice"));

  GgufKeys nameless;
  nameless.add("", true);
  EXPECT_THAT(opened(small_gguf(nameless)), HasSubstr("the name of key 0 has 0 bytes"));

  const std::string good = small_gguf();
  std::string file = good;
  put(file, after(file, "llama.block_count"), 13, 4);
  EXPECT_THAT(opened(file), HasSubstr("key 'llama.block_count' is of unknown type 13"));
  file = good;
  put(file, after(file, "tokenizer.ggml.scores") + 4, 9, 4);
  EXPECT_THAT(opened(file), HasSubstr("key 'tokenizer.ggml.scores' has elements of type 9"));
  file = good;
  put(file, after(file, "tokenizer.ggml.add_bos_token") + 4, 2, 1);
  EXPECT_THAT(opened(file), HasSubstr("neither true nor false"));
}

TEST(BadFiles, BrokenAlignment) {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 1u << 31}) {
    GgufKeys keys = small_keys();
    keys.add("general.alignment", alignment);
    EXPECT_THAT(opened(small_gguf(keys)), HasSubstr("'general.alignment'"));
  }
}

TEST(BadFiles, BrokenTensors) {
  const std::string good = small_gguf();
  ASSERT_EQ(opened(good), "");
  const auto with = [&](std::string_view tensor, std::size_t at, std::uint64_t value,
                        std::size_t bytes) {
    std::string file = good;
    put(file, after(file, tensor) + at, value, bytes);
    return opened(file);
  };
  constexpr std::string_view kMatrix = "token_embd.weight", kVector = "output_norm.weight";
  // In the entry of a matrix: dimensions 0, shape 4 and 12, type 20, offset 24.
  EXPECT_THAT(with(kMatrix, 0, 0, 4), HasSubstr("has 0 dimensions"));
  EXPECT_THAT(with(kMatrix, 0, 5, 4), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(with(kMatrix, 4, 0, 8), HasSubstr("has no elements"));
  EXPECT_THAT(with(kMatrix, 4, 33, 8),
              HasSubstr("is 33 wide, which is not a multiple of Q8_0's 32"));
  EXPECT_THAT(with(kMatrix, 12, std::uint64_t{1} << 40, 8), HasSubstr("over 2^32 blocks"));
  EXPECT_THAT(with(kMatrix, 20, 16, 4), HasSubstr("type IQ2_XXS are not supported"));
  EXPECT_THAT(with(kMatrix, 20, 26, 4), HasSubstr("type I32 are not supported"));
  EXPECT_THAT(with(kMatrix, 20, 77, 4), HasSubstr("type number 77 are not supported"));
  EXPECT_THAT(with(kMatrix, 24, 16, 8), HasSubstr("offset 16 is not a multiple of 32"));
  EXPECT_THAT(with(kMatrix, 24, 1 << 20, 8), HasSubstr("lie outside the file"));
  EXPECT_THAT(with(kMatrix, 24, ~std::uint64_t{31}, 8), HasSubstr("lie outside the file"));
  EXPECT_THAT(with(kMatrix, 24, 288, 8), HasSubstr("overlap"));
  EXPECT_THAT(with(kVector, 4, 14, 8), HasSubstr("overlap"));
  EXPECT_THAT(with(kVector, 4, 4096, 8), HasSubstr("lie outside the file"));

  auto tensors = small_tensors();
  tensors.push_back(tensors.front());
  EXPECT_THAT(opened(small_gguf(small_keys(), tensors)),
              HasSubstr("tensor 'token_embd.weight' occurs twice"));
}

// Files that consist of the most expensive elements still take at most twice their size.
TEST(BadFiles, WhatCostsMost) {
  const std::vector<std::string_view> empty(100000);
  GgufKeys keys;
  keys.add("tokenizer.ggml.tokens", std::span(empty));
  EXPECT_EQ(opened(gguf_header(keys, {})), "");

  std::vector<GgufTensorPlan> tensors;
  for (int i = 0; i < 50000; ++i)
    tensors.push_back({.name = std::to_string(i), .format = WeightFormat::kF16, .cols = 1});
  GgufKeys narrow;
  narrow.add("general.alignment", std::uint32_t{8});
  EXPECT_EQ(opened(small_gguf(narrow, tensors, 8)), "");

  std::string header = "{";
  for (int i = 0; i < 20000; ++i)
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
              R"(":{"dtype":"F16","shape":[1],"data_offsets":[)" + std::to_string(2 * i) + "," +
              std::to_string(2 * i + 2) + "]}";
  const std::string file = test::safetensors(header + "}", 40000);
  const TensorNaming naming = [](std::string_view name) { return std::string(name); };
  const PeakMemory memory;
  const auto read = read_safetensors(bytes_of(file), naming);
  EXPECT_LE(memory.bytes(), 2 * file.size() + kSmallChange);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->size(), 20000u);
}

TEST(BadFiles, BrokenSafetensors) {
  const std::string good = test::safetensors(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"BF16","shape":[2,4],"data_offsets":[16,32]}})",
      32);
  const TensorNaming naming = [](std::string_view name) { return std::string(name); };
  ASSERT_TRUE(read_safetensors(bytes_of(good), naming).ok());
  const auto check = [&](const std::string& file) {
    const PeakMemory memory;
    const auto read = read_safetensors(bytes_of(file), naming);
    EXPECT_LE(memory.bytes(), 2 * file.size() + kSmallChange);
    if (!read.ok()) {
      EXPECT_FALSE(read.error().message.empty());
      for (const char c : read.error().message) EXPECT_GE(c, ' ') << read.error().message;
    }
    return read.ok();
  };
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(check(good.substr(0, cut))) << cut;
  std::mt19937 random(3);
  for (int i = 0; i < 10000; ++i) {
    std::string file = good;
    file[random() % file.size()] = static_cast<char>(random());
    check(file);
  }
}

TEST(BadFiles, NoFileAtAll) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(test::problem_of(ModelFile::open(folder / "absent.gguf")),
              HasSubstr("absent.gguf: No such file"));
  EXPECT_THAT(test::problem_of(ModelFile::open("/dev/null")), HasSubstr("not a regular file"));
  folder.write("empty.gguf", "");
  EXPECT_THAT(test::problem_of(ModelFile::open(folder / "empty.gguf")), HasSubstr("is empty"));
}

}  // namespace
}  // namespace hearth
