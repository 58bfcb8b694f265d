// Models that are loaded next to another one.
#include "engine/companion_model.h"

#include <gtest/gtest.h>

#include "engine/open_model_file.h"
#include "tests/support/fake_devices.h"

namespace hearth {
namespace {

constexpr const char* kTinyModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

TEST(CompanionModel, IsCountedInTheMemoryOfTheModel) {
  const auto model = open_model_file("");
  ASSERT_TRUE(model.ok());
  for (const CompanionRole role : {CompanionRole::kDraft, CompanionRole::kAmateur}) {
    const auto companion = CompanionModel::open(role, kTinyModel, **model);
    ASSERT_TRUE(companion.ok()) << companion.error().message;
    const StepLimits limits{.rows = 64, .sequences = 4, .logit_rows = 12, .context = 256};
    MemoryRequest request;
    (*companion)->add_memory(testing::fake_devices().front().caps, limits, request);
    EXPECT_GT(request.companion_bytes, (*companion)->plan().weight_bytes);
    EXPECT_GT(request.companion_bytes_per_block, 0u);
    // An amateur computes every row that the model computes; a draft model has one per sequence.
    EXPECT_EQ((*companion)->limits(limits).logit_rows, role == CompanionRole::kDraft ? 4u : 12u);
  }
}

TEST(CompanionModel, AnAmateurLimitsTheContext) {
  const auto model = open_model_file("");
  ASSERT_TRUE(model.ok());
  const auto draft = CompanionModel::open(CompanionRole::kDraft, kTinyModel, **model);
  const auto amateur = CompanionModel::open(CompanionRole::kAmateur, kTinyModel, **model);
  ASSERT_TRUE(draft.ok() && amateur.ok());
  const uint32_t own = (*amateur)->plan().config.context;
  EXPECT_EQ((*draft)->context_limit(own + 100), own + 100);
  EXPECT_EQ((*amateur)->context_limit(own + 100), own);
  EXPECT_EQ((*amateur)->context_limit(own - 1), own - 1);
}

TEST(CompanionModel, TheBuiltInDraftModelIsOnlyForTheBuiltInModel) {
  const auto model = open_model_file("");
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(CompanionModel::open(CompanionRole::kDraft, "", **model).ok());
  const auto tiny = open_model_file(kTinyModel);
  ASSERT_TRUE(tiny.ok());
  const auto refused = CompanionModel::open(CompanionRole::kDraft, "", **tiny);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--draft-model must name"), std::string::npos);
}

}  // namespace
}  // namespace hearth
