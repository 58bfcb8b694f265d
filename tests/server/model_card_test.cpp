#include "tools/server/model_card.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using nlohmann::json;

TEST(ModelCard, TellsTheContextThatFits) {
  SchedulerLimits limits{.context = 4096, .pool_blocks = 1000};
  EXPECT_EQ(model_json({.id = "m", .limits = limits})["max_model_len"], 4096);
  limits.pool_blocks = 100;  // of 16 tokens
  EXPECT_EQ(model_json({.id = "m", .limits = limits})["max_model_len"], 1600);
}

TEST(ModelCard, TellsTheDefaultsAsAPersonWouldWriteThem) {
  const json card = model_json({.id = "m",
                                .sampling = {.temperature = 0.7f, .top_k = 40, .min_p = 0.05f},
                                .example = "Hello"});
  EXPECT_EQ(card["sampling"].dump(),
            R"({"frequency_penalty":0,"min_p":0.05,"presence_penalty":0,"repetition_penalty":1,)"
            R"("temperature":0.7,"top_k":40,"top_p":1})");
  EXPECT_EQ(card["example"], "Hello");
  EXPECT_FALSE(model_json({.id = "m"}).contains("example"));
}

}  // namespace
}  // namespace hearth
