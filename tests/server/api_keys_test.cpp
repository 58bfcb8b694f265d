#include "tools/server/api_keys.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ApiKeys, AdmitOnlyAWholeKey) {
  const ApiKeys keys({"secret"});
  EXPECT_TRUE(keys.admit("Bearer secret"));
  EXPECT_TRUE(keys.admit("bearer secret"));
  for (const char* wrong :
       {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret",
        "bearersecret", "Bearer  secret", "Basic secret", "Bearer secretsecret", "Bearer tecret"})
    EXPECT_FALSE(keys.admit(wrong)) << wrong;
}

TEST(ApiKeys, AdmitEachOfSeveralKeys) {
  const ApiKeys keys({"first", "second one", "third"});
  for (const char* right : {"Bearer first", "Bearer second one", "Bearer third"})
    EXPECT_TRUE(keys.admit(right)) << right;
  for (const char* wrong : {"Bearer fourth", "Bearer firstsecond one", "Bearer first,second one",
                            "Bearer second", "Bearer "})
    EXPECT_FALSE(keys.admit(wrong)) << wrong;
}

TEST(ApiKeys, WithoutKeysEverybodyIsAdmitted) {
  const ApiKeys none;
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.admit(""));
  EXPECT_TRUE(none.admit("Bearer anything"));
}

TEST(ApiKeys, AreReadOnePerLine) {
  EXPECT_THAT(parse_api_keys("one\n\n  two \t\r\n# not a key\nthree"),
              ElementsAre("one", "two", "three"));
  EXPECT_TRUE(parse_api_keys("\n \r\n#\n").empty());
  const std::string path = ::testing::TempDir() + "/api_keys_test.txt";
  std::ofstream(path) << "# class 7b\none\ntwo\n";
  EXPECT_THAT(read_api_keys(path).value(), ElementsAre("one", "two"));
  std::ofstream(path) << "# nothing here\n";
  EXPECT_THAT(read_api_keys(path).error().message, HasSubstr("no key"));
  std::remove(path.c_str());
  EXPECT_THAT(read_api_keys(path).error().message, HasSubstr("cannot open"));
  EXPECT_THAT(read_api_keys("/dev/zero").error().message, HasSubstr("too large"));
}

}  // namespace
}  // namespace hearth
