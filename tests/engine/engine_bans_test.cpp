// Banned strings: what a request generates is what one gets by drawing token after token, and by
// going back to the first token of every banned string as soon as it is complete, without that
// token. No matter what else happens to the request.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "engine/text/detokenizer.h"
#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

class EngineBansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    tokenizer_ = Tokenizer::create(read_vocabulary(**file).value()).value();
  }

  StandInEngine engine(const SchedulerLimits& limits, Policy policy = {},
                       const std::string& script = "") {
    StandInOptions options{.limits = limits, .vocabulary = tokenizer_->size()};
    if (!script.empty()) options.script = ids_of(script);
    return StandInEngine(options, policy, tokenizer_.get());
  }
  std::vector<TokenId> ids_of(const std::string& text) const {
    return tokenizer_->encode(" " + text, {.add_bos = false});
  }
  static constexpr SchedulerLimits kRoomy{
      .max_sequences = 8, .max_step_tokens = 64, .context = 256, .pool_blocks = 200};

  // What the request must generate, one draw at a time. Ends early if a place has too many bans.
  std::vector<TokenId> reference(const StandInOptions& options, const GenerationRequest& request) {
    const StandInSampler sampler(options);
    params::SamplingRow row = make_sampling_row(request.sampling, {}).value();
    const SamplingOptions& sampling = request.sampling;
    const bool penalties = sampling.repetition_penalty != 1.0f ||
                           sampling.presence_penalty != 0.0f || sampling.frequency_penalty != 0.0f;
    std::vector<TokenId> ids;
    std::map<size_t, std::vector<TokenId>> bans;
    while (ids.size() < request.max_tokens) {
      uint64_t read = 0;
      for (const TokenId id : request.prompt) read = StandInSampler::mix(read, id);
      for (const TokenId id : ids) read = StandInSampler::mix(read, id);
      std::map<TokenId, float> biases;
      for (const LogitBias& bias : request.biases) biases[bias.token] = bias.bias;
      for (const TokenId id : bans[ids.size()]) biases[id] = -INFINITY;
      std::vector<params::TokenBias> entries;
      for (const auto& [token, bias] : biases) entries.push_back({.token = token, .bias = bias});
      std::vector<params::TokenCount> history;
      if (penalties)
        history = count_tokens(request.prompt, ids, sampling.repetition_penalty,
                               StepExecutor::kHistoryTokens);
      row.counter = static_cast<uint32_t>(ids.size());
      ids.push_back(sampler.sample(read, row, history, entries));
      if (const auto first = first_token_of_ban(ids, request.banned_strings)) {
        const TokenId banned = ids[*first];
        bans.erase(bans.upper_bound(*first), bans.end());
        ids.resize(*first);
        bans[*first].push_back(banned);
        ++taken_back_;
        if (bans[*first].size() > BanGuard::kMostBansPerPlace) return ids;
      }
    }
    return ids;
  }
  std::optional<size_t> first_token_of_ban(const std::vector<TokenId>& ids,
                                           const std::vector<std::string>& banned) const {
    Detokenizer detokenizer(*tokenizer_);
    std::string text;
    std::vector<size_t> ends;
    for (const TokenId id : ids) {
      text += detokenizer.push(id);
      ends.push_back(text.size());
    }
    std::optional<std::pair<size_t, size_t>> found;
    for (const std::string& string : banned)
      if (const size_t at = text.find(string); at != std::string::npos)
        if (const std::pair match(at + string.size(), at); !found || match < *found) found = match;
    if (!found) return std::nullopt;
    size_t token = 0;
    while (ends[token] <= found->second) ++token;
    return token;
  }

  GenerationRequest request_of(uint32_t number) const {
    GenerationRequest request = mixed_request(number);
    for (TokenId& id : request.prompt) id %= tokenizer_->size();
    request.ignore_end = true;
    if (number % 4 != 3) request.banned_strings = {"a", " t", "er"};
    if (number % 4 == 1) request.banned_strings = {"e", "the", "in", "s"};
    // Some of these tokens are banned sooner or later.
    if (number % 8 == 1)
      for (TokenId id = 300; id < 600; ++id) request.biases.push_back({.token = id, .bias = 1.5f});
    return request;
  }

  void expect_reference(StandInEngine& engine, uint32_t count) {
    std::vector<GenerationRequest> requests;
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < count; ++i) {
      requests.push_back(request_of(i));
      auto stream = engine->submit(requests.back());
      ASSERT_TRUE(stream.ok()) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    for (uint32_t i = 0; i < count; ++i) {
      SCOPED_TRACE(i);
      std::vector<TokenId> ids;
      std::string text;
      while (const auto token = streams[i].next()) {
        ids.push_back(token->id);
        text += token->text;
      }
      text += streams[i].end().text;
      ASSERT_EQ(ids, reference(engine.options(), requests[i])) << streams[i].end().message;
      ASSERT_EQ(streams[i].end().generated_tokens, ids.size());
      for (const std::string& banned : requests[i].banned_strings)
        ASSERT_EQ(text.find(banned), std::string::npos) << banned << " in " << text;
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  int taken_back_ = 0;
};

TEST_F(EngineBansTest, GeneratesWhatOneDrawAtATimeGives) {
  StandInEngine one = engine(kRoomy);
  expect_reference(one, 48);
  EXPECT_GT(taken_back_, 100);
}

TEST_F(EngineBansTest, HoldUnderEveryPolicyWithFewBlocks) {
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
      SCOPED_TRACE(name);
      Policy policy = *named_policy(name);
      policy.preemption = preemption;
      policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
      StandInEngine one = engine({.max_sequences = 6,
                                  .max_step_tokens = 60,
                                  .context = 128,
                                  .pool_blocks = 14,
                                  .swap_blocks = 30},
                                 policy);
      expect_reference(one, 16);
    }
}

// With DRY every token waits for the host, but only bans change what a slot holds.
TEST_F(EngineBansTest, SlotsAreWrittenAgainOnlyAfterABan) {
  StandInEngine one = engine(kRoomy);
  GenerationRequest request{.prompt = {1, 2, 3}, .max_tokens = 40, .ignore_end = true};
  request.banned_strings = {"a text that nobody writes"};
  request.biases = {{.token = 5, .bias = 1}};
  request.sampling.dry_multiplier = 0.8f;
  auto stream = one->submit(request);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  while (stream->next()) {
  }
  EXPECT_EQ(stream->end().generated_tokens, 40u) << stream->end().message;
  EXPECT_EQ(one.executor().bias_writes, 1u);
}

TEST_F(EngineBansTest, AreOnlyTheStringsThemselves) {
  const std::string text = "One day, the cat sat on the mat and was happy.";
  const std::vector<TokenId> script = ids_of(text);
  for (const auto& [banned, begins] :
       std::map<std::string, std::string>{{"cat sat", " One day, the"},
                                          {"was happ", " One day, the cat sat on the mat and"},
                                          {"mat and", " One day, the cat sat on the"},
                                          {"dog", " " + text}}) {
    SCOPED_TRACE(banned);
    StandInEngine one = engine(kRoomy, {}, text);
    GenerationRequest request{.prompt = ids_of("Once"),
                              .max_tokens = static_cast<uint32_t>(script.size())};
    request.banned_strings = {banned};
    auto stream = one->submit(request);
    ASSERT_TRUE(stream.ok());
    const std::string made = read_text(*stream);
    EXPECT_TRUE(made.starts_with(begins)) << made;
    EXPECT_EQ(made.find(banned), std::string::npos) << made;
  }
}

// The scheduler had already given back the slot and blocks of a request with its last token.
TEST_F(EngineBansTest, ALastTokenThatIsTakenBackIsReplaced) {
  const std::string text = "One day, the cat sat on the mat and was happy.";
  StandInEngine one = engine(kRoomy, {}, text);
  GenerationRequest request{.prompt = ids_of("Once"),
                            .max_tokens = static_cast<uint32_t>(ids_of(text).size())};
  request.banned_strings = {"happy."};
  auto stream = one->submit(request);
  ASSERT_TRUE(stream.ok());
  const std::string made = read_text(*stream);
  EXPECT_TRUE(made.starts_with(" One day, the cat sat on the mat and was")) << made;
  EXPECT_EQ(made.find("happy."), std::string::npos) << made;
  EXPECT_EQ(stream->end().generated_tokens, request.max_tokens);
  EXPECT_EQ(stream->end().reason, FinishReason::kLength);
}

TEST_F(EngineBansTest, TextIsDeliveredOnlyOnceItIsCertain) {
  StandInEngine one = engine(kRoomy, {}, "One day, the cat sat on the mat.");
  GenerationRequest request{.prompt = ids_of("Once"), .max_tokens = 9};
  request.banned_strings = {"the cat sat off", "sat on the mat."};
  auto stream = one->submit(request);
  ASSERT_TRUE(stream.ok());
  std::string text;
  while (const auto token = stream->next()) {
    text += token->text;
    EXPECT_EQ(text.find("sat on the mat"), std::string::npos);
  }
  EXPECT_EQ(stream->end().generated_tokens, 9u);
}

// A stop string that is complete before the banned one hides it, and one that is complete later
// does not.
TEST_F(EngineBansTest, StopStringsThatComeFirstEndTheText) {
  const std::string text = "One day, the cat sat on the mat.";
  const auto run = [&](const std::string& stop, const std::string& banned) {
    StandInEngine one = engine(kRoomy, {}, text);
    GenerationRequest request{.prompt = ids_of("Once"),
                              .max_tokens = static_cast<uint32_t>(ids_of(text).size()),
                              .stop = {stop}};
    request.banned_strings = {banned};
    auto stream = one->submit(request);
    return read_text(*stream);
  };
  EXPECT_EQ(run(" cat", " cat sat"), " One day, the");
  EXPECT_EQ(run(" sat on", " sat on the"), " One day, the cat");
  EXPECT_EQ(run(" mat.", "dog"), " One day, the cat sat on the");
  EXPECT_EQ(run("nothing", " cat").find(" cat"), std::string::npos);
}

// Every continuation begins a banned string: the request ends instead of trying for ever.
TEST_F(EngineBansTest, GivesUpWhenNothingIsLeftToTry) {
  StandInEngine one = engine(kRoomy);
  GenerationRequest request{.prompt = ids_of("Once"), .max_tokens = 20, .ignore_end = true};
  for (char letter = ' '; letter <= '~'; ++letter)
    request.banned_strings.push_back(std::string(1, letter));
  auto stream = one->submit(request);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  const std::string text = read_text(*stream);
  for (const std::string& banned : request.banned_strings)
    EXPECT_EQ(text.find(banned), std::string::npos);
  EXPECT_LT(stream->end().generated_tokens, 20u);
  EXPECT_EQ(stream->end().reason, FinishReason::kStop);
}

TEST_F(EngineBansTest, EachOfSeveralCompletionsHasItsOwn) {
  StandInEngine one = engine(kRoomy);
  GenerationRequest request = request_of(1);
  auto streams = one->submit_n(request, 3);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    EXPECT_EQ(read_ids(stream), reference(one.options(), request));
    ++request.sampling.seed;
  }
}

TEST_F(EngineBansTest, WrongOnesAreRefused) {
  StandInEngine one = engine(kRoomy);
  GenerationRequest request{.prompt = {1}, .max_tokens = 4};
  request.banned_strings = {"x", ""};
  EXPECT_FALSE(one->submit(request).ok());
  request.banned_strings.assign(kMaxBannedStrings + 1, "x");
  EXPECT_FALSE(one->submit(request).ok());
  request.banned_strings = {"x"};
  for (TokenId id = 0; id < kMaxLogitBiases - 1; ++id) request.biases.push_back({.token = id});
  EXPECT_FALSE(one->submit(request).ok());
  StandInEngine no_text({.limits = kRoomy});
  request.biases.clear();
  EXPECT_FALSE(no_text->submit(request).ok());
}

}  // namespace
}  // namespace hearth::testing
