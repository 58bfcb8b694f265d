// The sampling settings that a model file brings along, as the commands use them.
#include <filesystem>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/weights/gguf_file.h"
#include "engine/weights/gguf_writer.h"
#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSampledModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class ModelSampling : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("model_sampling_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The tiny model with these keys added.
  std::string model_with(const std::function<void(GgufKeys&)>& add_keys) const {
    const std::string path = (folder_ / "model.gguf").string();
    const auto file = GgufFile::open(kSampledModel);
    EXPECT_TRUE(file.ok());
    GgufKeys keys;
    for (const GgufKey& key : (*file)->keys()) keys.add(key);
    add_keys(keys);
    std::vector<GgufTensorPlan> tensors;
    for (const ModelTensor& tensor : (*file)->tensors())
      tensors.push_back({.name = tensor.name,
                         .format = tensor.format,
                         .matrices = tensor.matrices,
                         .rows = tensor.rows,
                         .cols = tensor.cols});
    auto writer = GgufWriter::create(path, keys, tensors);
    EXPECT_TRUE(writer.ok());
    for (const ModelTensor& tensor : (*file)->tensors())
      EXPECT_TRUE(writer->write(tensor.bytes).ok());
    EXPECT_TRUE(writer->finish().ok());
    return path;
  }

  static nlohmann::json ids(const std::string& model, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", "-m", model, "-p", "Once upon a time", "-n", "24"});
    return hearth_json(more)["ids"];
  }

  std::filesystem::path folder_;
};

TEST_F(ModelSampling, IsUsedUnlessTheUserGivesAnother) {
  const std::string greedy =
      model_with([](GgufKeys& keys) { keys.add("general.sampling.temp", 0.0f); });
  const nlohmann::json expected = ids(kSampledModel, {"--temp", "0"});
  EXPECT_EQ(ids(greedy), expected) << "whatever the seed";
  EXPECT_EQ(ids(kSampledModel, {"--seed", "3"}),
            ids(kSampledModel, {"--seed", "3", "--temp", "0.7", "--min-p", "0.05", "--top-k", "0"}))
      << "Hearth's defaults";
  EXPECT_EQ(ids(greedy, {"--temp", "1.5", "--seed", "3"}),
            ids(kSampledModel, {"--temp", "1.5", "--seed", "3", "--min-p", "0"}))
      << "the user's temperature, and the model's other settings";
  EXPECT_NE(ids(greedy, {"--temp", "1.5", "--seed", "3"}), expected);
}

TEST_F(ModelSampling, IsShownByInfo) {
  const std::string model = model_with([](GgufKeys& keys) {
    keys.add("general.sampling.temp", 0.6f);
    keys.add("general.sampling.top_k", std::int32_t{20});
  });
  const Finished text = hearth({"info", "-m", model});
  EXPECT_THAT(text.out, HasSubstr("temperature 0.6, top-k 20 (set by the model)"));
  const auto json = hearth_json({"info", "-m", model})["sampling"];
  EXPECT_EQ(json["temperature"], 0.6);
  EXPECT_EQ(json["top_k"], 20);
  EXPECT_EQ(json["min_p"], 0.0);
  EXPECT_THAT(json["from_model"], ElementsAre("temperature", "top_k"));
  EXPECT_THAT(hearth({"info", "-m", kSampledModel}).out,
              HasSubstr("temperature 0.7, min-p 0.05 (Hearth's defaults)"));
}

TEST_F(ModelSampling, ThatMakesNoSenseIsIgnoredWithOneLine) {
  const std::string model = model_with([](GgufKeys& keys) {
    keys.add("general.sampling.temp", std::numeric_limits<float>::quiet_NaN());
    keys.add("general.sampling.top_k", std::int32_t{-5});
    keys.add("general.sampling.top_p", "most");
  });
  for (const Finished& result :
       {hearth({"info", "-m", model}), hearth({"run", "-m", model, "-p", "Once", "-n", "1"})}) {
    EXPECT_EQ(result.exit_code, 0);
    const size_t line = result.err.find("default sampling settings ignored");
    ASSERT_NE(line, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("default sampling settings ignored", line + 1), std::string::npos);
    for (const char* name : {"temperature is nan", "top_k is -5", "top_p is 'most'"})
      EXPECT_THAT(result.err, HasSubstr(name));
  }
  EXPECT_EQ(ids(model, {"--seed", "3"}), ids(kSampledModel, {"--seed", "3"}));
}

}  // namespace
}  // namespace hearth::testing
