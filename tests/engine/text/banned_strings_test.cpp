#include "engine/text/banned_strings.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr size_t kAll = static_cast<size_t>(-1);

// Pushes tokens and releases those that are certain. Returns the first token, counted from the
// first one pushed, of the first banned string.
struct Watched {
  explicit Watched(std::vector<std::string> strings) : banned(std::move(strings)) {}
  std::optional<size_t> push(const std::vector<std::string>& tokens) {
    for (const std::string& token : tokens) {
      banned.push(token);
      if (const auto found = banned.find(kAll)) return released + *found;
      for (size_t certain = banned.certain(); certain > 0; --certain) {
        banned.release();
        ++released;
      }
    }
    return std::nullopt;
  }
  BannedStrings banned;
  size_t released = 0;
};

TEST(BannedStrings, AreFoundInsideAndAcrossTokens) {
  EXPECT_EQ(Watched({"cat"}).push({"a ", "cat", "!"}), 1u);
  EXPECT_EQ(Watched({"cat"}).push({"a ", "con", "cat", "enate"}), 2u);
  EXPECT_EQ(Watched({"cat"}).push({"a ", "c", "", "a", "t"}), 1u);
  EXPECT_EQ(Watched({"cat"}).push({"a big c", "at"}), 0u);
  EXPECT_EQ(Watched({"cat"}).push({"ca", "ca", "t"}), 1u);
  EXPECT_EQ(Watched({"cat"}).push({"ca", "r"}), std::nullopt);
  EXPECT_EQ(Watched({"a"}).push({"", "a"}), 1u);
}

TEST(BannedStrings, TheOneThatEndsFirstCounts) {
  EXPECT_EQ(Watched({"one two three", "two"}).push({"one ", "two", " three"}), 1u);
  EXPECT_EQ(Watched({"one two", "two"}).push({"one ", "two"}), 0u);
}

TEST(BannedStrings, HoldsBackOnlyWhatMayBecomeOne) {
  Watched watched({"abcd", "cdx"});
  watched.push({"ab", "c"});
  EXPECT_EQ(watched.banned.held(), 2u);
  watched.push({"y"});
  EXPECT_EQ(watched.banned.held(), 0u);
  watched.push({"zzz abc"});
  EXPECT_EQ(watched.banned.held(), 1u);
  watched.push({""});
  EXPECT_EQ(watched.banned.held(), 2u);
}

TEST(BannedStrings, TakenBackTextIsForgotten) {
  BannedStrings banned({"abc"});
  for (const char* token : {"x", "a", "bc"}) banned.push(token);
  banned.release();
  EXPECT_EQ(banned.find(kAll), 0u);
  banned.take_back(0);
  EXPECT_EQ(banned.held(), 0u);
  banned.push("bc");
  EXPECT_EQ(banned.find(kAll), std::nullopt);
  EXPECT_EQ(banned.certain(), 1u);
}

TEST(BannedStrings, WhatEndsTooLateDoesNotCount) {
  BannedStrings banned({"abc"});
  banned.push("xx");
  banned.release();
  banned.push("abc");
  EXPECT_EQ(banned.find(5), 0u);
  EXPECT_EQ(banned.find(4), std::nullopt);
  EXPECT_EQ(banned.find(1), std::nullopt);
}

}  // namespace
}  // namespace hearth
