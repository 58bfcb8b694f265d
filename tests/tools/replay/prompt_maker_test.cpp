// Fitting a trace to a model, and prompts of its lengths.
#include "tools/replay/prompt_maker.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

TraceRequest request_of(uint32_t prompt, std::vector<uint64_t> ids, double per_id = 512) {
  return {.prompt_tokens = prompt, .prefix_ids = std::move(ids), .tokens_per_prefix_id = per_id};
}

PromptMaker maker(uint64_t seed = 1) { return PromptMaker(text_token_ids(nullptr, 32000), seed); }

size_t equal_tokens(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const size_t shorter = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(shorter), b.begin()).first -
      a.begin());
}

TEST(PromptMaker, EqualIdsAreEqualPrefixes) {
  const auto a = maker().make(request_of(1500, {5, 6, 7}), 0);
  const auto b = maker().make(request_of(1300, {5, 6, 8}), 1);
  const auto c = maker().make(request_of(1500, {9, 10, 11}), 2);
  EXPECT_EQ(a.size(), 1500u);
  EXPECT_EQ(b.size(), 1300u);
  EXPECT_EQ(equal_tokens(a, b), 1024u);
  EXPECT_LT(equal_tokens(a, c), 2u);
  // The sections of one prompt differ.
  EXPECT_NE(std::vector(a.begin(), a.begin() + 512),
            std::vector(a.begin() + 512, a.begin() + 1024));
}

TEST(PromptMaker, AShorterSectionStartsTheSame) {
  const auto a = maker().make(request_of(700, {5, 6}), 0);
  const auto b = maker().make(request_of(600, {5, 6}), 1);
  EXPECT_EQ(equal_tokens(a, b), 600u);
}

TEST(PromptMaker, TokensWithoutAPrefixIdAreUnique) {
  const auto a = maker().make(request_of(208, {0}, 192), 0);
  const auto b = maker().make(request_of(208, {0}, 192), 1);
  EXPECT_EQ(equal_tokens(a, b), 192u);
  EXPECT_EQ(a, maker().make(request_of(208, {0}, 192), 0));
  EXPECT_NE(a, maker(2).make(request_of(208, {0}, 192), 0));
}

TEST(PromptMaker, PrefixesStayEqualWhenScaled) {
  Trace trace{.requests = {request_of(1500, {5, 6, 7}), request_of(1300, {5, 6, 8})}};
  scale_lengths(trace, 0.1);
  EXPECT_EQ(trace.requests[0].prompt_tokens, 150u);
  const auto a = maker().make(trace.requests[0], 0);
  const auto b = maker().make(trace.requests[1], 1);
  EXPECT_EQ(a.size(), 150u);
  EXPECT_EQ(b.size(), 130u);
  EXPECT_EQ(equal_tokens(a, b), 102u);  // of 102.4
}

TEST(PromptMaker, OnlyGivenIdsAreUsed) {
  const std::vector<TokenId> ids = {3, 5, 8};
  const auto prompt = PromptMaker(ids, 1).make(request_of(200, {1}, 100), 0);
  EXPECT_EQ(std::set(prompt.begin(), prompt.end()), std::set(ids.begin(), ids.end()));
}

TEST(Trace, LengthsAreScaledAndRounded) {
  Trace trace{.requests = {{.prompt_tokens = 10, .generated_tokens = 1}}};
  scale_lengths(trace, 0.25);
  EXPECT_EQ(trace.requests[0].prompt_tokens, 3u);
  EXPECT_EQ(trace.requests[0].generated_tokens, 1u);
}

TEST(Trace, ArrivalsAreCompressed) {
  Trace trace{.requests = {{.arrival_seconds = 0}, {.arrival_seconds = 30}}};
  speed_up(trace, 20);
  EXPECT_EQ(trace.requests[1].arrival_seconds, 1.5);
  arrive_at_once(trace);
  EXPECT_EQ(trace.requests[1].arrival_seconds, 0);
}

TEST(Trace, CutsTheLongerPartAndCountsTheRequests) {
  struct Case {
    uint32_t prompt, generated, prompt_after, generated_after;
  };
  const std::vector<Case> cases = {{200, 56, 200, 56},  {201, 56, 200, 56},   {374, 44, 212, 44},
                                   {10, 1000, 10, 246}, {500, 500, 128, 128}, {128, 1000, 128, 128},
                                   {129, 128, 128, 128}};
  Trace trace;
  for (const Case& one : cases)
    trace.requests.push_back({.prompt_tokens = one.prompt, .generated_tokens = one.generated});
  EXPECT_EQ(clip_lengths(trace, 256), cases.size() - 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(trace.requests[i].prompt_tokens, cases[i].prompt_after) << i;
    EXPECT_EQ(trace.requests[i].generated_tokens, cases[i].generated_after) << i;
  }
}

}  // namespace
}  // namespace hearth::testing
