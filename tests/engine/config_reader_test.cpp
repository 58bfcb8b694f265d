// What architectures read from files of either kind, where files differ or say nothing.
#include "engine/model/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/architecture.h"
#include "engine/model/step_bucket.h"
#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SmallModel : public MadeUpFile {
 public:
  explicit SmallModel(const std::string& architecture, FileKind kind = FileKind::kGguf)
      : MadeUpFile(kind) {
    set("general.architecture", architecture);
    set(architecture + ".block_count", uint64_t{4});
    set(architecture + ".embedding_length", uint64_t{64});
    set(architecture + ".feed_forward_length", uint64_t{128});
    set(architecture + ".attention.head_count", uint64_t{2});
    set(architecture + ".context_length", uint64_t{2048});
    set(architecture + ".attention.layer_norm_rms_epsilon", 1e-5);
  }
};

ModelConfig config_of(const ModelFile& file) {
  const auto architecture = find_architecture(file);
  EXPECT_TRUE(architecture.ok()) << architecture.error().message;
  const auto config = (*architecture)->read_config(file);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? *config : ModelConfig{};
}

TEST(Windows, AreAListOrAPeriod) {
  SmallModel list("gemma3");
  list.set("gemma3.attention.sliding_window", uint64_t{512})
      .set("gemma3.attention.sliding_window_pattern", std::vector<bool>{true, false, false, true});
  EXPECT_THAT(config_of(list).windowed, ElementsAre(true, false, false, true));
  SmallModel period("gemma3");
  period.set("gemma3.attention.sliding_window_pattern", uint64_t{2});
  EXPECT_THAT(config_of(period).windowed, ElementsAre(true, false, true, false));
  EXPECT_EQ(config_of(period).window, 1024u);
  EXPECT_THAT(config_of(SmallModel("gemma2")).windowed, ElementsAre(true, false, true, false));
}

// In a folder the configuration's own defaults are settled: what is not there was null.
TEST(Gemma, SilenceMeansNoneOnlyInFolders) {
  const ModelConfig file = config_of(SmallModel("gemma2"));
  EXPECT_EQ(file.attention_soft_cap, 50);
  EXPECT_EQ(file.logit_soft_cap, 30);
  for (const char* name : {"gemma2", "gemma3"}) {
    const ModelConfig folder = config_of(SmallModel(name, FileKind::kHuggingFace));
    EXPECT_EQ(folder.attention_soft_cap, 0) << name;
    EXPECT_EQ(folder.logit_soft_cap, 0) << name;
    EXPECT_THAT(folder.windowed, IsEmpty()) << name;
  }
}

// Refused before lists of so many layers are made, which would take seconds and 512 MB.
TEST(Layers, AreBounded) {
  for (const std::string name : {"llama", "gemma2", "gemma3"}) {
    SmallModel file(name);
    file.set(name + ".block_count", uint64_t{4294967295})
        .set(name + ".attention.sliding_window", uint64_t{512});
    const auto config = (*find_architecture(file))->read_config(file);
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_THAT(config.error().message, HasSubstr("4294967295 layers are more than any model has"));
  }
}

TEST(Rope, OldFilesHaveAFactorAlone) {
  SmallModel old("llama");
  old.set("llama.rope.scale_linear", 4.0);
  EXPECT_EQ(config_of(old).rope.info.scaling, RopeScaling::kLinear);
  EXPECT_EQ(config_of(old).rope.info.factor, 4);
  SmallModel none("llama");
  none.set("llama.rope.scaling.factor", 0.0);
  EXPECT_EQ(config_of(none).rope.info.scaling, config_of(SmallModel("llama")).rope.info.scaling);
  EXPECT_EQ(config_of(none).rope.info.factor, 1);
}

TEST(Rope, YarnStretchesTheModelsContextWhereNoOtherIsNamed) {
  SmallModel file("llama");
  file.set("llama.rope.scaling.type", std::string("yarn")).set("llama.rope.scaling.factor", 4.0);
  EXPECT_EQ(config_of(file).rope.info.original_context, 2048u);
}

TEST(BucketSize, IsNeverTooSmall) {
  for (uint64_t count = 1; count <= UINT32_MAX; count += 1 + count / 3) {
    const auto size = static_cast<uint32_t>(count);
    EXPECT_GE(bucket_size(size), size);
    EXPECT_GE(bucket_size(UINT32_MAX - size), UINT32_MAX - size);
  }
}

}  // namespace
}  // namespace hearth::testing
