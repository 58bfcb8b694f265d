#include "ui/data/model_label.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ModelLabel, IsNeverAPath) {
  EXPECT_EQ(model_label("/models/Qwen2.5-7B-Q4_K_M.gguf"), "Qwen2.5-7B-Q4_K_M");
  EXPECT_EQ(model_label("models/Llama-3.2-1B/"), "Llama-3.2-1B");
  EXPECT_EQ(model_label("models/Llama-3.2-1B"), "Llama-3.2-1B");
  EXPECT_EQ(model_label("hearth-tiny-Q8_0"), "hearth-tiny-Q8_0") << "a name stays as it is";
  EXPECT_EQ(model_label(""), "the built-in model");
}

}  // namespace
}  // namespace hearth
