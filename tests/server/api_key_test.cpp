#include "tools/server/api_key.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ApiKey, OnlyTheWholeKeyLetsIn) {
  EXPECT_TRUE(has_api_key("Bearer secret", "secret"));
  EXPECT_TRUE(has_api_key("bearer secret", "secret"));
  for (const char* wrong :
       {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret",
        "bearersecret", "Bearer  secret", "Basic secret", "Bearer secretsecret", "Bearer tecret"})
    EXPECT_FALSE(has_api_key(wrong, "secret")) << wrong;
}

TEST(ApiKey, WithoutAKeyEverybodyComesIn) {
  EXPECT_TRUE(has_api_key("", ""));
  EXPECT_TRUE(has_api_key("Bearer anything", ""));
}

}  // namespace
}  // namespace hearth
