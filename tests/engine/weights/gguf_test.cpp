#include "engine/weights/gguf.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/weights/gguf_file.h"
#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using test::bytes_of;
using test::problem_of;
using test::small_gguf;
using test::small_keys;
using test::small_tensors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Gguf, ReadsWhatTheWriterWrote) {
  const std::string gguf = small_gguf();
  const auto file = ModelFile::from_memory(bytes_of(gguf), "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Metadata& metadata = (*file)->metadata();
  EXPECT_EQ((*file)->kind(), FileKind::kGguf);
  EXPECT_EQ(metadata.all().size(), 9u);
  EXPECT_EQ(**metadata.text("general.architecture"), "llama");
  EXPECT_EQ(**metadata.unsigned_integer("llama.block_count"), 2u);
  EXPECT_EQ(**metadata.unsigned_integer("llama.context_length"), 4096u);
  EXPECT_EQ(**metadata.number("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(**metadata.boolean("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(**metadata.unsigned_integer("tokenizer.ggml.bos_token_id"), 1u);
  EXPECT_THAT(**metadata.texts("tokenizer.ggml.tokens"), ElementsAre("<unk>", "<s>", "", "a\nb"));
  EXPECT_THAT(**metadata.numbers("tokenizer.ggml.scores"), ElementsAre(0, 0.5, -1, -2.25));
  EXPECT_THAT(**metadata.numbers("tokenizer.ggml.token_type"), ElementsAre(2, 3, -1, 1));

  const auto tensors = small_tensors();
  ASSERT_EQ((*file)->tensors().size(), tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const ModelTensor* const tensor = (*file)->find(tensors[t].name);
    ASSERT_NE(tensor, nullptr) << tensors[t].name;
    EXPECT_EQ(tensor->format, tensors[t].format);
    EXPECT_EQ(tensor->matrices, tensors[t].matrices);
    EXPECT_EQ(tensor->rows, tensors[t].rows);
    EXPECT_EQ(tensor->cols, tensors[t].cols);
    ASSERT_EQ(tensor->bytes.size(), tensors[t].bytes());
    for (std::size_t i = 0; i < tensor->bytes.size(); ++i)
      ASSERT_EQ(std::to_integer<std::size_t>(tensor->bytes[i]), (t + i) % 251);
  }
  EXPECT_EQ((*file)->find("blk.0"), nullptr);
  EXPECT_EQ((*file)->find("zzz"), nullptr);
}

TEST(Gguf, TensorsAreInOrderOfName) {
  const std::string gguf = small_gguf();
  const auto file = ModelFile::from_memory(bytes_of(gguf), "x.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(std::is_sorted((*file)->tensors().begin(), (*file)->tensors().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(Gguf, ReadsVersionTwo) {
  std::string gguf = small_gguf();
  gguf[4] = 2;
  EXPECT_EQ(problem_of(gguf), "");
}

TEST(Gguf, ReadsAnotherAlignment) {
  GgufKeys keys = small_keys();
  keys.add("general.alignment", std::uint32_t{256});
  const std::string gguf = small_gguf(keys, small_tensors(), 256);
  const auto file = ModelFile::from_memory(bytes_of(gguf), "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(std::to_integer<int>((*file)->find("experts.weight")->bytes.front()), 3);
}

TEST(Gguf, ReadsAFileWithoutTensors) {
  std::string gguf = gguf_header(small_keys(), {});
  EXPECT_EQ(problem_of(gguf), "");
  gguf.resize(gguf.find_last_not_of('\0') + 4);  // without the padding, too
  EXPECT_EQ(problem_of(gguf), "");
}

TEST(Gguf, KeysOfTheWrongKindAreNamed) {
  const std::string gguf = small_gguf();
  const auto file = ModelFile::from_memory(bytes_of(gguf), "x.gguf");
  ASSERT_TRUE(file.ok());
  const Metadata& metadata = (*file)->metadata();
  EXPECT_THAT(metadata.unsigned_integer("general.architecture").error().message,
              HasSubstr("'general.architecture'"));
  EXPECT_FALSE(metadata.text("llama.block_count").ok());
  EXPECT_FALSE(metadata.number("tokenizer.ggml.scores").ok());
  EXPECT_FALSE(metadata.numbers("tokenizer.ggml.tokens").ok());
  EXPECT_FALSE(metadata.texts("tokenizer.ggml.scores").ok());
  EXPECT_FALSE(metadata.booleans("tokenizer.ggml.scores").ok());
  EXPECT_FALSE(metadata.boolean("llama.block_count").ok());
  ASSERT_TRUE(metadata.text("absent").ok());
  EXPECT_FALSE(metadata.text("absent")->has_value());
}

TEST(Gguf, NumbersAreConvertedWhereNothingIsLost) {
  Metadata metadata;
  metadata.set("negative", std::int64_t{-1});
  metadata.set("half", 0.5);
  metadata.set("large", ~std::uint64_t{0});
  metadata.set("whole", 7.0);
  metadata.set("flags", std::vector<bool>{true, false});
  EXPECT_FALSE(metadata.unsigned_integer("negative").ok());
  EXPECT_FALSE(metadata.unsigned_integer("half").ok());
  EXPECT_EQ(**metadata.unsigned_integer("large"), ~std::uint64_t{0});
  EXPECT_FALSE(metadata.number("large").ok());
  EXPECT_EQ(**metadata.unsigned_integer("whole"), 7u);
  EXPECT_EQ(**metadata.number("negative"), -1.0);
  EXPECT_THAT(**metadata.booleans("flags"), ElementsAre(true, false));
}

// A set of three files: the first has the keys, two have the tensors.
class SplitGguf : public ::testing::Test {
 protected:
  static std::string name(int part) { return "m-0000" + std::to_string(part) + "-of-00003.gguf"; }

  void write(int part, const GgufKeys& more, const std::vector<GgufTensorPlan>& tensors,
             std::int32_t number) {
    GgufKeys keys = more;
    keys.add("split.no", number);
    keys.add("split.count", std::int32_t{3});
    keys.add("split.tensors.count", std::int32_t{4});
    folder_.write(name(part), small_gguf(keys, tensors));
  }
  void SetUp() override {
    const auto tensors = small_tensors();
    write(1, small_keys(), {}, 0);
    write(2, {}, {tensors[0]}, 1);
    write(3, {}, {tensors[1], tensors[2], tensors[3]}, 2);
  }

  test::TemporaryFolder folder_;
};

TEST_F(SplitGguf, AnyPartOpensAll) {
  for (int part = 1; part <= 3; ++part) {
    const auto file = ModelFile::open(folder_ / name(part));
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ((*file)->tensors().size(), 4u);
    EXPECT_TRUE((*file)->metadata().has("general.architecture"));
    EXPECT_EQ(std::to_integer<int>((*file)->find("output_norm.weight")->bytes.front()), 1);
  }
}

TEST_F(SplitGguf, AMissingPartIsNamed) {
  std::filesystem::remove(folder_ / name(2));
  EXPECT_THAT(problem_of(ModelFile::open(folder_ / name(1))), HasSubstr(name(2)));
}

TEST_F(SplitGguf, AWrongPartIsNamed) {
  write(2, {}, {small_tensors()[0]}, 2);
  EXPECT_THAT(problem_of(ModelFile::open(folder_ / name(1))), HasSubstr(name(2)));
}

TEST_F(SplitGguf, MissingTensorsAreCounted) {
  write(2, {}, {}, 1);
  EXPECT_THAT(problem_of(ModelFile::open(folder_ / name(1))), HasSubstr("3 tensors"));
}

TEST_F(SplitGguf, ATensorInTwoPartsIsNamed) {
  write(2, {}, {small_tensors()[1]}, 1);
  EXPECT_THAT(problem_of(ModelFile::open(folder_ / name(1))),
              HasSubstr("'blk.0.ffn_up.weight' occurs twice"));
}

TEST_F(SplitGguf, APartUnderAnotherNameIsRefused) {
  std::filesystem::copy(folder_ / name(1), folder_ / "other.gguf");
  EXPECT_THAT(problem_of(ModelFile::open(folder_ / "other.gguf")),
              HasSubstr("-00001-of-00003.gguf"));
}

TEST_F(SplitGguf, APartInMemoryIsRefused) {
  EXPECT_THAT(problem_of(test::read_file(folder_ / name(1))), HasSubstr("one of 3 files"));
}

TEST(GgufWriter, WritesUnderItsNameOnlyWhenWhole) {
  const test::TemporaryFolder folder;
  const auto path = folder / "x.gguf";
  const std::vector<GgufTensorPlan> tensors = {
      {.name = "a", .format = WeightFormat::kF32, .cols = 3},
      {.name = "b", .format = WeightFormat::kF32, .cols = 2}};
  const std::string data = test::tensor_data(tensors, 32);
  {
    auto writer = GgufWriter::create(path, small_keys(), tensors);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write(bytes_of(data).subspan(0, 12)).ok());
    EXPECT_FALSE(writer->finish().ok());
    EXPECT_FALSE(writer->write(bytes_of(data).subspan(0, 12)).ok());  // more than b has
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  {
    auto writer = GgufWriter::create(path, small_keys(), tensors);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write(bytes_of(data).subspan(0, 4)).ok());
    ASSERT_TRUE(writer->write(bytes_of(data).subspan(4, 8)).ok());
    ASSERT_TRUE(writer->write(bytes_of(data).subspan(32, 8)).ok());
    ASSERT_TRUE(writer->finish().ok());
  }
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->find("b")->bytes.size(), 8u);
  EXPECT_EQ(std::to_integer<int>((*file)->find("b")->bytes.front()), 1);
  EXPECT_TRUE((*file)->consists_of(folder.path() / "." / "x.gguf"));
  EXPECT_FALSE((*file)->consists_of(folder / "y.gguf"));
}

TEST(GgufWriter, KeysOfAnotherFileStayAsTheyAre) {
  const std::string gguf = small_gguf();
  const auto file = GgufFile::from_memory(bytes_of(gguf), "x.gguf");
  ASSERT_TRUE(file.ok());
  GgufKeys keys;
  for (const GgufKey& key : (*file)->keys()) keys.add(key);
  EXPECT_EQ(keys.bytes(), small_keys().bytes());
}

TEST(Gguf, SharedModel) {
  if (!std::filesystem::exists(test::shared_model())) GTEST_SKIP() << "no shared model here";
  const auto file = ModelFile::open(test::shared_model());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->tensors().size(), 56u);
  EXPECT_EQ(**(*file)->metadata().unsigned_integer("llama.block_count"), 6u);
  EXPECT_EQ((*(*file)->metadata().texts("tokenizer.ggml.tokens"))->size(), 32000u);
  const ModelTensor* const embedding = (*file)->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->format, WeightFormat::kQ8_0);
  EXPECT_EQ(embedding->rows, 32000u);
  EXPECT_EQ(embedding->cols, 288u);
}

}  // namespace
}  // namespace hearth
