#include "engine/weights/quantize_file.h"

#include <cmath>
#include <csignal>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "engine/weights/quantize.h"
#include "engine/weights/repack.h"
#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

ModelTensor tensor(std::string name, std::uint64_t rows, std::uint64_t cols) {
  return {.name = std::move(name), .format = WeightFormat::kF32, .rows = rows, .cols = cols};
}

std::string mixed(std::string_view type, const MixModel& model, std::string name,
                  std::uint64_t cols = 512) {
  const WeightFormat format =
      mixed_format(*find_quantize_type(type), model, tensor(std::move(name), 4, cols));
  return std::string(format_info(format).name);
}

TEST(QuantizeMix, NamesOfTypes) {
  EXPECT_EQ(find_quantize_type("q4_k_m")->name, "Q4_K_M");
  EXPECT_EQ(find_quantize_type("Q4_K")->name, "Q4_K_M");
  EXPECT_EQ(find_quantize_type("q3_k")->name, "Q3_K_M");
  EXPECT_FALSE(find_quantize_type("Q4_K_X"));
  EXPECT_FALSE(find_quantize_type(""));
  EXPECT_THAT(quantize_type_names(), HasSubstr("Q4_K_S, Q4_K_M"));
}

// The formats that llama-quantize gives a model of 8 layers.
TEST(QuantizeMix, TensorsThatMatterGetMoreBits) {
  const MixModel model{.layers = 8, .heads_per_kv_head = 2, .has_output = true};
  std::string down, value, small_down, small_value;
  for (int layer = 0; layer < 8; ++layer) {
    const std::string block = "blk." + std::to_string(layer);
    down += mixed("Q4_K_M", model, block + ".ffn_down.weight")[1];
    value += mixed("Q4_K_M", model, block + ".attn_v.weight")[1];
    small_down += mixed("Q4_K_S", model, block + ".ffn_down.weight")[1];
    small_value += mixed("Q4_K_S", model, block + ".attn_v.weight")[1];
  }
  EXPECT_EQ(down, "64464466");
  EXPECT_EQ(value, "64464466");
  EXPECT_EQ(small_down, "54444444");
  EXPECT_EQ(small_value, "55554444");
  EXPECT_EQ(mixed("Q4_K_M", model, "output.weight"), "Q6_K");
  EXPECT_EQ(mixed("Q4_K_M", model, "token_embd.weight"), "Q4_K");
  EXPECT_EQ(mixed("Q4_K_M", model, "blk.3.attn_qkv.weight"), "Q5_K");
  EXPECT_EQ(mixed("Q4_K_M", model, "blk.3.attn_q.weight"), "Q4_K");
  EXPECT_EQ(mixed("Q4_0", model, "output.weight"), "Q6_K");
  EXPECT_EQ(mixed("Q8_0", model, "output.weight"), "Q8_0");
  EXPECT_EQ(mixed("F16", model, "output.weight"), "F16");
  EXPECT_EQ(mixed("Q2_K", model, "blk.0.attn_v.weight"), "Q3_K");
  EXPECT_EQ(mixed("Q2_K", {.layers = 8, .heads_per_kv_head = 4}, "blk.0.attn_v.weight"), "Q4_K");
}

TEST(QuantizeMix, ATiedEmbeddingIsTheOutput) {
  const MixModel tied{.layers = 8};
  EXPECT_EQ(mixed("Q4_K_M", tied, "token_embd.weight"), "Q6_K");
  EXPECT_EQ(mixed("Q4_K_M", tied, "token_embd.weight", 288), "Q8_0");
}

TEST(QuantizeMix, RowsThatAreNotAMultipleOfABlock) {
  const MixModel model{.layers = 8, .has_output = true};
  EXPECT_EQ(mixed("Q4_K_M", model, "blk.1.ffn_up.weight", 288), "Q5_0");
  EXPECT_EQ(mixed("Q5_K_S", model, "blk.1.ffn_up.weight", 288), "Q5_1");
  EXPECT_EQ(mixed("Q6_K", model, "blk.1.ffn_up.weight", 288), "Q8_0");
  EXPECT_EQ(mixed("Q3_K_S", model, "blk.1.ffn_up.weight", 288), "Q4_0");
  EXPECT_EQ(mixed("IQ4_XS", model, "blk.1.ffn_up.weight", 288), "IQ4_NL");
  EXPECT_EQ(mixed("Q4_0", model, "blk.1.ffn_up.weight", 40), "F16");
  EXPECT_EQ(mixed("Q4_K_M", model, "blk.1.ffn_up.weight", 40), "F16");
}

TEST(QuantizeMix, VectorsAndNormsKeepTheirFormat) {
  const QuantizeType type = *find_quantize_type("Q4_K_M");
  for (const ModelTensor& kept :
       {tensor("output_norm.weight", 1, 512), tensor("blk.0.attn_q_norm.weight", 2, 512),
        tensor("blk.0.attn_q.bias", 2, 512), tensor("rope_freqs.weight", 1, 512)})
    EXPECT_EQ(mixed_format(type, {}, kept), WeightFormat::kF32) << kept.name;
}

// A model with random weights and tensors of all kinds.
class QuantizeFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      values_[t].resize(tensors_[t].rows * tensors_[t].cols);
      for (float& value : values_[t]) value = normal(random);
    }
  }

  void write_model() {
    GgufKeys keys = test::small_keys();
    keys.add("general.file_type", std::uint32_t{0});
    auto writer = GgufWriter::create(in_, keys, tensors_);
    ASSERT_TRUE(writer.ok());
    for (const auto& values : values_) {
      const auto status = writer->write(std::as_bytes(std::span(values)));
      ASSERT_TRUE(status.ok()) << status.error().message;
    }
    ASSERT_TRUE(writer->finish().ok());
  }

  Result<QuantizeReport> run(const std::filesystem::path& in, const std::filesystem::path& out,
                             std::string_view type, unsigned threads = 2) {
    HEARTH_ASSIGN(const auto model, GgufFile::open(in));
    return quantize_file(*model, out, *find_quantize_type(type), threads);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path in_ = folder_ / "in.gguf", out_ = folder_ / "out.gguf";
  // The first needs several batches of rows, the last one less than one.
  std::vector<GgufTensorPlan> tensors_ = {
      {.name = "token_embd.weight", .format = WeightFormat::kF32, .rows = 10001, .cols = 256},
      {.name = "blk.0.ffn_down.weight", .format = WeightFormat::kF32, .rows = 3, .cols = 288},
      {.name = "blk.1.ffn_up_exps.weight",
       .format = WeightFormat::kF32,
       .matrices = 2,
       .rows = 6,
       .cols = 256},
      {.name = "output_norm.weight", .format = WeightFormat::kF32, .cols = 256}};
  std::array<std::vector<float>, 4> values_;
};

TEST_F(QuantizeFile, GivesTheBytesOfQuantizeRow) {
  write_model();
  const auto report = run(in_, out_, "Q4_K_M");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->tensors, 4u);
  EXPECT_EQ(report->formats.at("F32"), 1u);
  const auto out = GgufFile::open(out_);
  ASSERT_TRUE(out.ok()) << out.error().message;
  const WeightFormat formats[] = {WeightFormat::kQ6K, WeightFormat::kQ5_0, WeightFormat::kQ4K,
                                  WeightFormat::kF32};
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const ModelTensor* const found = (*out)->find(tensors_[t].name);
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(found->format, formats[t]) << tensors_[t].name;
    EXPECT_EQ(found->matrices, tensors_[t].matrices);
    EXPECT_EQ(found->rows, tensors_[t].rows);
    std::vector<std::byte> expected(found->bytes.size());
    ASSERT_TRUE(quantize_row(formats[t], values_[t], expected).ok());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found->bytes.begin()))
        << tensors_[t].name;
  }
  EXPECT_EQ(**(*out)->metadata().unsigned_integer("general.file_type"), 15u);
  EXPECT_EQ(**(*out)->metadata().unsigned_integer("general.quantization_version"), 2u);
  EXPECT_EQ((**(*out)->metadata().texts("tokenizer.ggml.tokens"))[3], "a\nb");
}

TEST_F(QuantizeFile, IsTheSameWithAnyNumberOfThreads) {
  write_model();
  ASSERT_TRUE(run(in_, out_, "Q8_0", 1).ok());
  ASSERT_TRUE(run(in_, folder_ / "three.gguf", "Q8_0", 3).ok());
  EXPECT_EQ(test::read_file(out_), test::read_file(folder_ / "three.gguf"));
}

TEST_F(QuantizeFile, QuantizingAgainLosesNothingMore) {
  write_model();
  ASSERT_TRUE(run(in_, out_, "Q8_0").ok());
  ASSERT_TRUE(run(out_, folder_ / "f32.gguf", "F32").ok());
  ASSERT_TRUE(run(folder_ / "f32.gguf", folder_ / "again.gguf", "Q8_0").ok());
  EXPECT_EQ(test::read_file(out_), test::read_file(folder_ / "again.gguf"));
}

TEST_F(QuantizeFile, RefusesToOverwriteTheModel) {
  write_model();
  const std::string before = test::read_file(in_);
  EXPECT_THAT(run(in_, folder_.path() / "." / "in.gguf", "Q8_0").error().message,
              HasSubstr("would overwrite the input"));
  std::filesystem::create_symlink(in_, folder_ / "link.gguf");
  EXPECT_THAT(run(in_, folder_ / "link.gguf", "Q8_0").error().message,
              HasSubstr("would overwrite the input"));
  EXPECT_EQ(test::read_file(in_), before);
}

TEST_F(QuantizeFile, LeavesNothingBehindWhenItFails) {
  values_[0][700] = std::numeric_limits<float>::quiet_NaN();
  write_model();
  EXPECT_THAT(run(in_, out_, "Q4_0").error().message, HasSubstr("tensor 'token_embd.weight'"));
  EXPECT_FALSE(run(in_, folder_ / "absent" / "out.gguf", "Q4_0").ok());
  const auto entries = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

// A limit on the size of files fails in the middle of a write, as a full disk does.
TEST_F(QuantizeFile, LeavesNothingBehindWhenTheDiskIsFull) {
  write_model();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto report = run(in_, out_, "Q4_0");
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("cannot write " + out_.string()));
  EXPECT_THAT(report.error().message, HasSubstr("the unfinished file was removed"));
  const auto entries = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(QuantizeFile, StopsOnRequest) {
  write_model();
  const auto model = GgufFile::open(in_);
  ASSERT_TRUE(model.ok());
  int calls = 0;
  std::uint64_t reached = 0;
  const auto progress = [&](const auto&, auto, std::uint64_t index) {
    reached = index;
    return ++calls < 3;
  };
  const auto report = quantize_file(**model, out_, *find_quantize_type("Q4_0"), 1, progress);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("stopped"));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(reached, 1u) << "it also asks within a tensor";
  const auto entries = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(QuantizeFile, ReplacesOnlyRegularFiles) {
  write_model();
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(run(in_, pipe, "Q4_0").error().message, HasSubstr("not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

}  // namespace
}  // namespace hearth
