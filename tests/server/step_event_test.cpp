// /events there and back again, and what a server that is none might send.
#include "tools/server/step_event.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Every field with a value of its own.
StepRecord full_record() {
  StepRecord record{.step = (uint64_t{1} << 53) + 1,
                    .begin_seconds = 1.25,
                    .plan_seconds = 0.001,
                    .submit_seconds = 1.251,
                    .run_seconds = 0.0301,
                    .wait_seconds = 0.02,
                    .end_seconds = 1.2811,
                    .tokens = 40,
                    .padding_tokens = 7,
                    .sampled_tokens = 2};
  record.members = {{.request = 11,
                     .slot = 3,
                     .phase = StepPhase::kPrompt,
                     .first_position = 16,
                     .tokens = 39,
                     .samples = false,
                     .proposed = 2,
                     .accepted = 1},
                    {.request = 12,
                     .slot = 4,
                     .first_position = 99,
                     .tokens = 5,
                     .samples = true,
                     .proposed = 4,
                     .accepted = 3}};
  record.arrived = {{.request = 13, .seconds = 1.1, .prompt_tokens = 17, .max_tokens = 117}};
  record.admitted = {11};
  record.preempted_recompute = {8, 9};
  record.preempted_swap = {10};
  record.finished = {6, 7};
  record.cancelled = {7};
  record.prefix_hits = {{.request = 11, .tokens = 16}};
  record.blocks_swapped_out = 1;
  record.blocks_swapped_in = 2;
  record.blocks_copied = 3;
  record.counts = {.waiting = 4,
                   .running = 5,
                   .swapped = 6,
                   .ending = 7,
                   .blocks_used = 8,
                   .blocks_cached = 9,
                   .blocks_free = 10,
                   .blocks_reserved = 11,
                   .blocks_shared = 12,
                   .swap_used = 13,
                   .swap_total = 14,
                   .kv_tokens = uint64_t{15} << 33,
                   .wasted_tokens = 16};
  return record;
}

TEST(StepEvent, ComesBackAsItWas) {
  const json sent = step_event(full_record());
  const auto parsed = parse_step_event(sent.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(step_event(*parsed), sent);
  // That alone would miss what is written from the wrong place.
  EXPECT_EQ(parsed->step, (uint64_t{1} << 53) + 1);
  EXPECT_EQ(parsed->run_seconds, 0.0301);
  EXPECT_EQ(parsed->members[0].phase, StepPhase::kPrompt);
  EXPECT_EQ(parsed->members[1].first_position, 99u);
  EXPECT_EQ(parsed->arrived[0].max_tokens, 117u);
  EXPECT_EQ(parsed->counts.blocks_reserved, 11u);
  EXPECT_EQ(parsed->counts.swap_total, 14u);
  EXPECT_EQ(parsed->counts.kv_tokens, uint64_t{15} << 33);
  EXPECT_EQ(parsed->counts.ending, 7u);
  EXPECT_EQ(parsed->blocks_swapped_in, 2u);
}

TEST(StepEvent, NoFieldOfARecordIsLeftOut) {
  // Each number of the full record is not 0: so none may be in what is sent.
  const json sent = step_event(full_record());
  const json flat = sent.flatten();
  for (const auto& [path, value] : flat.items()) {
    if (value.is_number()) {
      EXPECT_NE(value, 0) << path;
    }
  }
  EXPECT_EQ(parse_step_event("{}")->members.size(), 0u) << "what is missing is empty";
}

TEST(StepEvent, HelloComesBackAsItWas) {
  EngineHello hello{.model = "a model \"with\" quotes",
                    .device = "llvmpipe",
                    .limits = {.max_sequences = 3,
                               .max_step_tokens = 5,
                               .context = 7,
                               .pool_blocks = 9,
                               .swap_blocks = 11,
                               .max_queue = 13},
                    .policy = *named_policy("static"),
                    .instance = 1234567890123,
                    .now = 12.5};
  hello.policy.max_chunk_tokens = 64;
  const auto parsed = parse_hello_event(hello_event(hello).dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(hello_event(*parsed), hello_event(hello));
  EXPECT_EQ(parsed->policy, hello.policy);
  EXPECT_EQ(parsed->model, hello.model);
  EXPECT_EQ(parsed->limits.max_queue, 13u);
  EXPECT_EQ(parsed->instance, 1234567890123u);
}

TEST(StepEvent, SaysWhatIsWrong) {
  const auto complaint = [](const std::string& text) {
    const auto parsed = parse_step_event(text);
    EXPECT_FALSE(parsed.ok()) << text;
    const std::string message = parsed.ok() ? "" : parsed.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  EXPECT_THAT(complaint(""), HasSubstr("JSON"));
  EXPECT_THAT(complaint("[1,2]"), HasSubstr("object"));
  EXPECT_THAT(complaint(R"({"step":-1})"), HasSubstr("step"));
  EXPECT_THAT(complaint(R"({"step":1.5})"), HasSubstr("step"));
  EXPECT_THAT(complaint(R"({"tokens":4294967296})"), HasSubstr("tokens"));
  EXPECT_THAT(complaint(R"({"run_seconds":-0.1})"), HasSubstr("run_seconds"));
  EXPECT_THAT(complaint(R"({"run_seconds":1e999})"), HasSubstr("JSON"));
  EXPECT_THAT(complaint(R"({"members":{}})"), HasSubstr("members"));
  EXPECT_THAT(complaint(R"({"members":[7]})"), HasSubstr("members"));
  EXPECT_THAT(complaint(R"({"members":[{"phase":"lunch"}]})"), HasSubstr("members.phase"));
  EXPECT_THAT(complaint(R"({"admitted":["a"]})"), HasSubstr("admitted"));
  EXPECT_THAT(complaint(R"({"blocks":3})"), HasSubstr("blocks"));
  EXPECT_THAT(complaint(std::string(1000, '[')), HasSubstr("levels"));
  EXPECT_FALSE(parse_hello_event(R"({"policy":{"layout":"sideways"}})").ok());
  EXPECT_FALSE(parse_hello_event(R"({"limits":{"context":"long"}})").ok());
  EXPECT_FALSE(parse_hello_event(R"({"model":7})").ok());
}

// Bytes changed, cut out and doubled: read or refused, never anything else.
TEST(StepEvent, BearsWhateverComes) {
  const std::string good = step_event(full_record()).dump();
  std::mt19937 random(5);
  uint32_t read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
      if (text.empty()) text.push_back('x');
    }
    ++(parse_step_event(text).ok() ? read : refused);
  }
  EXPECT_GT(read, 100u);
  EXPECT_GT(refused, 10000u);
}

TEST(CountsEvent, SaysWhatItKnowsAndLeavesTheRest) {
  const SchedulerCounts before{.running = 3, .blocks_used = 9, .blocks_shared = 4};
  const SchedulerCounts now{.waiting = 2, .swapped = 1, .blocks_cached = 5, .blocks_free = 7};
  const auto parsed = parse_counts_event(counts_event(now).dump(), before);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  SchedulerCounts expected = now;
  expected.blocks_shared = 4;
  EXPECT_EQ(*parsed, expected);
  EXPECT_FALSE(parse_counts_event("[", before).ok());
  EXPECT_FALSE(parse_counts_event(R"({"blocks": {"used": "all"}})", before).ok());
}

}  // namespace
}  // namespace hearth
