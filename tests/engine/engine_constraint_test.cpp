// Requests with grammars, on the stand-in executor: what they generate is what masking every token
// by itself would give, whatever else happens to them, and nobody waits for their masks.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/constraint.h"
#include "engine/grammar/workspace.h"
#include "engine/grammar_vocabulary.h"
#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"
#include "tests/support/engine_rooms.h"
#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::comes_true;
using ::testing::HasSubstr;
using testing::read_ids;
using testing::read_text;
using testing::StandInEngine;
using testing::StandInOptions;
using testing::StandInSampler;
using Compiled = std::shared_ptr<const grammar::Grammar>;

constexpr SchedulerLimits kConstrainedLimits{.max_sequences = 8,
                                             .max_step_tokens = 256,
                                             .context = 512,
                                             .pool_blocks = 400,
                                             .max_proposed = 40};

const Tokenizer& tokenizer() {
  static const std::unique_ptr<Tokenizer> made = [] {
    auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    return Tokenizer::create(read_vocabulary(**file).value()).value();
  }();
  return *made;
}

const std::shared_ptr<const grammar::TokenTrie>& trie() {
  static const auto made = make_token_trie(tokenizer());
  return made;
}

Compiled schema(const char* text) { return grammar::Grammar::compile_json_schema(text).value(); }
Compiled regex(const char* text) { return grammar::Grammar::compile_regex(text).value(); }

Compiled person() {
  return schema(R"({"type": "object", "additionalProperties": false,
      "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"},
                     "colour": {"enum": ["red", "green", "blue"]}},
      "required": ["name", "age", "colour"]})");
}

StandInOptions constrained_options(const SchedulerLimits& limits) {
  return {.limits = limits, .vocabulary = tokenizer().size()};
}

StandInEngine engine_with(const StandInOptions& options, const Policy& policy = {}) {
  return StandInEngine(options, policy, &tokenizer());
}

// Requests of all kinds, some with a grammar.
GenerationRequest constrained_request(uint32_t number) {
  GenerationRequest request = testing::mixed_request(number);
  for (TokenId& id : request.prompt) id %= tokenizer().size();
  request.max_tokens += 20;
  switch (number % 5) {
    case 0:
    case 1:
      request.grammar = person();
      break;
    case 2:
      request.grammar = regex("(yes|no|perhaps)( and (yes|no|perhaps))*");
      break;
    case 3:
      request.grammar =
          grammar::Grammar::compile_gbnf("root ::= [0-9]+ (\" + \" [0-9]+){0,3}").value();
      break;
    default:
      request.ignore_end = true;  // so that generate_alone() knows where it ends
  }
  return request;
}

std::vector<TokenId> forced_by(grammar::Matcher& matcher) {
  return matcher.forced_tokens([](std::string_view text) {
    EXPECT_FALSE(tokenizer().adds_space_prefix());
    return tokenizer().encode(text, {.add_bos = false});
  });
}

// What a request with a grammar generates, by asking for every token whether it may follow.
std::vector<TokenId> masked_alone(const StandInOptions& options, const GenerationRequest& request) {
  const StandInSampler sampler(options);
  const SamplingOptions& sampling = request.sampling;
  const bool penalties = sampling.repetition_penalty != 1.0f || sampling.presence_penalty != 0.0f ||
                         sampling.frequency_penalty != 0.0f;
  std::vector<params::TokenCount> history;
  if (penalties)
    history =
        count_tokens(request.prompt, {}, sampling.repetition_penalty, StepExecutor::kHistoryTokens);
  std::vector<params::TokenBias> biases;
  for (const LogitBias& bias : request.biases)
    biases.push_back({.token = bias.token, .bias = bias.bias});
  uint64_t read = 0;
  for (const TokenId token : request.prompt) read = StandInSampler::mix(read, token);
  params::SamplingRow row = make_sampling_row(sampling, {}).value();
  grammar::Matcher matcher(request.grammar, trie());
  std::vector<TokenId> ids;
  const auto append = [&](TokenId id) {
    if (penalties) testing::count_token(history, id);
    ids.push_back(id);
    read = StandInSampler::mix(read, id);
    matcher.accept(id);
    return ids.size() < request.max_tokens;
  };
  for (;;) {
    for (const TokenId id : forced_by(matcher))
      if (!append(id)) return ids;
    row.counter = static_cast<uint32_t>(ids.size());
    TokenId id = sampler.sample(read, row, history, biases);
    std::vector<bool> allowed(options.vocabulary);
    bool goes_on = false;
    for (TokenId token = 0; token < options.vocabulary; ++token) {
      allowed[token] = matcher.allows(token);
      goes_on |= allowed[token] && !tokenizer().ends_generation(token);
    }
    if (!goes_on) return ids;
    while (!allowed[id]) id = (id + 1) % options.vocabulary;
    if (!append(id) || tokenizer().ends_generation(id)) return ids;
  }
}

std::vector<TokenId> expected(const StandInEngine& engine, const GenerationRequest& request) {
  return request.grammar != nullptr ? masked_alone(engine.options(), request)
                                    : engine.alone(request);
}

void expect_masked_outputs(StandInEngine& engine, uint32_t count) {
  std::vector<GenerationRequest> requests;
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < count; ++i) requests.push_back(constrained_request(i));
  for (const GenerationRequest& request : requests) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(read_ids(streams[i]), expected(engine, requests[i])) << "request " << i;
    EXPECT_NE(streams[i].end().reason, FinishReason::kError) << streams[i].end().message;
  }
}

TEST(EngineConstraint, IdsAreThoseOfMaskingEveryTokenInTheSameBatchAsOthers) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  expect_masked_outputs(engine, 40);
  EXPECT_GT(engine->metrics().forced_tokens.value(), 40u);
}

TEST(EngineConstraint, HoldsUnderEveryPolicyWithFewBlocks) {
  uint64_t recomputed = 0, swapped = 0;
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
      SCOPED_TRACE(name);
      Policy policy = *named_policy(name);
      policy.preemption = preemption;
      policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
      StandInEngine engine = engine_with(constrained_options({.max_sequences = 6,
                                                              .max_step_tokens = 60,
                                                              .context = 160,
                                                              .pool_blocks = 14,
                                                              .swap_blocks = 30}),
                                         policy);
      expect_masked_outputs(engine, 15);
      recomputed += engine->metrics().preemptions_recompute.value();
      swapped += engine->metrics().preemptions_swap.value();
    }
  EXPECT_GT(recomputed, 0u);
  EXPECT_GT(swapped, 0u);
}

TEST(EngineConstraint, SpeculationProposesOnlyWhatTheGrammarAllows) {
  StandInOptions options = constrained_options(kConstrainedLimits);
  options.speculation = {.method = SpeculationMethod::kNgram, .max_proposed = 6};
  StandInEngine engine = engine_with(options);
  expect_masked_outputs(engine, 30);
  // So few texts are possible that guesses are often right.
  GenerationRequest request{.prompt = {5, 6, 7}, .max_tokens = 200};
  request.grammar = regex("(ab|b)*");
  const uint64_t accepted = engine->metrics().accepted_tokens.value();
  EXPECT_EQ(read_ids(engine->submit(request).value()), masked_alone(options, request));
  EXPECT_GT(engine->metrics().accepted_tokens.value(), accepted);
  EXPECT_GT(engine->metrics().proposed_tokens.value(), engine->metrics().accepted_tokens.value());
}

TEST(EngineConstraint, CompletionsOfOnePromptEachFollowTheGrammar) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  GenerationRequest request{.prompt = testing::made_up_prompt(40, 1), .max_tokens = 60};
  for (TokenId& id : request.prompt) id %= tokenizer().size();
  request.sampling.seed = 17;
  request.grammar = person();
  auto streams = engine->submit_n(request, 5);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    EXPECT_EQ(read_ids(stream), masked_alone(engine.options(), request));
    ++request.sampling.seed;
  }
}

TEST(EngineConstraint, ForcedTokensHaveProbabilityOneAndAreCounted) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  GenerationRequest request{.prompt = {5}, .max_tokens = 60};
  request.sampling.top_logprobs = 2;
  request.grammar = regex("colour: (red|green|blue), size: [0-9]");
  auto stream = engine->submit(request);
  const auto first = stream->next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->logprob, 0);
  ASSERT_EQ(first->top.size(), 1u);
  EXPECT_EQ(first->top[0].id, first->id);
  EXPECT_EQ(first->top[0].logprob, 0);
  read_ids(*stream);
  const Metrics& metrics = engine->metrics();
  EXPECT_GT(metrics.forced_tokens.value(), 5u);
  EXPECT_LT(metrics.forced_tokens.value(), metrics.generated_tokens.value());
  // Forced tokens take no steps of their own.
  EXPECT_LE(metrics.steps.value() + metrics.forced_tokens.value(),
            metrics.generated_tokens.value() + 1);
}

TEST(EngineConstraint, ATextThatCanOnlyEndIsStopped) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  for (const bool ignore_end : {false, true}) {
    GenerationRequest request{.prompt = {5}, .max_tokens = 60, .ignore_end = ignore_end};
    request.grammar = regex("only this");
    auto fixed = engine->submit(request);
    EXPECT_EQ(read_text(*fixed), "only this");
    EXPECT_EQ(fixed->end().reason, FinishReason::kStop);
    request.grammar = regex("[ab]{7}");
    auto chosen = engine->submit(request);
    const std::string text = read_text(*chosen);
    EXPECT_EQ(text.size(), 7u);
    EXPECT_EQ(text.find_first_not_of("ab"), std::string::npos);
    EXPECT_EQ(chosen->end().reason, FinishReason::kStop);
  }
}

TEST(EngineConstraint, TheEndTokenComesOnlyWhereTheTextIsComplete) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  uint32_t ended = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    GenerationRequest request{.prompt = {5 + seed}, .max_tokens = 40};
    request.grammar = regex("(ab|cd)*!");
    auto stream = engine->submit(request);
    const std::string text = read_text(*stream);
    if (stream->end().reason != FinishReason::kStop) continue;
    ++ended;
    EXPECT_EQ(text.back(), '!') << text;
  }
  EXPECT_GT(ended, 5u);
  // Without the end token it continues to its length.
  GenerationRequest request{.prompt = {5}, .max_tokens = 40, .ignore_end = true};
  request.grammar = regex("[a-d]*");
  auto stream = engine->submit(request);
  EXPECT_EQ(read_ids(*stream).size(), 40u);
  EXPECT_EQ(stream->end().reason, FinishReason::kLength);
}

TEST(EngineConstraint, ForcedTokensEndWithTheLengthAndWithStopStrings) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  const std::string text = "the quick brown fox jumps over the lazy dog";
  GenerationRequest request{.prompt = {5}, .max_tokens = 3};
  request.grammar = regex((text + "[ab]").c_str());
  auto cut = engine->submit(request);
  EXPECT_EQ(read_ids(*cut).size(), 3u);
  EXPECT_EQ(cut->end().reason, FinishReason::kLength);
  request.max_tokens = 60;
  request.stop = {"fox"};
  auto stopped = engine->submit(request);
  EXPECT_EQ(read_text(*stopped), "the quick brown ");
  EXPECT_EQ(stopped->end().reason, FinishReason::kStop);
  // The same after a token that was sampled.
  request.grammar = regex(("[ab]" + text).c_str());
  auto later = engine->submit(request);
  EXPECT_EQ(read_text(*later).substr(1), "the quick brown ");
  EXPECT_EQ(later->end().reason, FinishReason::kStop);
}

// More forced tokens than the ledger takes at once, and than a step has room for.
TEST(EngineConstraint, LongForcedTextsAreCommittedWhole) {
  StandInEngine engine = engine_with(constrained_options(
      {.max_sequences = 4, .max_step_tokens = 16, .context = 512, .pool_blocks = 200}));
  std::string text;
  for (int i = 0; i < 40; ++i) text += "word " + std::to_string(i) + " ";
  for (const float penalty : {1.0f, 1.3f}) {
    GenerationRequest request{.prompt = {5, 9}, .max_tokens = 400};
    request.sampling.repetition_penalty = penalty;
    request.grammar = regex(("[ab]" + text + "[ab]{4}").c_str());
    auto stream = engine->submit(request);
    EXPECT_EQ(read_ids(*stream), masked_alone(engine.options(), request));
    EXPECT_EQ(stream->end().reason, FinishReason::kStop);
  }
}

// The forced tokens of an earlier request fill a block that the prompt alone does not.
TEST(EngineConstraint, ForcedTokensAreNotCachedPromptTokens) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  GenerationRequest request{.prompt = {5, 6, 7}, .max_tokens = 60};
  request.grammar = regex("the quick brown fox jumps over the lazy dog and the cat[ab]{3}");
  uint32_t cached = 0;
  for (int i = 0; i < 2; ++i) {
    auto stream = engine->submit(request);
    read_ids(*stream);
    EXPECT_LE(stream->end().cached_tokens, stream->end().prompt_tokens);
    cached = stream->end().cached_tokens;
  }
  EXPECT_EQ(cached, 3u);
}

TEST(EngineConstraint, AFaultOfTheGrammarIsToldFromOthers) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  GenerationRequest request{.prompt = {5}, .max_tokens = 10};
  request.grammar = grammar::Grammar::compile_lark("start: /[ab]/ <[99999999]>").value();
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  read_ids(*stream);
  EXPECT_EQ(stream->end().reason, FinishReason::kError);
  EXPECT_TRUE(stream->end().grammar_failed);
}

TEST(EngineConstraint, AGrammarNeedsAVocabulary) {
  StandInEngine engine(constrained_options(kConstrainedLimits));
  GenerationRequest request{.prompt = {5}, .max_tokens = 3};
  request.grammar = regex("a*");
  const auto stream = engine->submit(request);
  ASSERT_FALSE(stream.ok());
  EXPECT_THAT(stream.error().message, HasSubstr("vocabulary"));
}

TEST(EngineConstraint, StaticDeliveryHoldsForcedTokensBackAsWell) {
  StandInEngine engine =
      engine_with(constrained_options(kConstrainedLimits), *named_policy("static"));
  engine->pause();
  GenerationRequest forced{.prompt = {5}, .max_tokens = 60},
      longer{.prompt = {6}, .max_tokens = 90};
  forced.grammar = regex("only this");
  longer.ignore_end = true;
  auto streams = engine->submit({forced, longer});
  ASSERT_TRUE(streams.ok());
  engine->step_once();
  ASSERT_TRUE(comes_true([&] { return engine->metrics().steps.value() >= 1; }));
  EXPECT_EQ(engine->metrics().finished_stop.value(), 0u);
  engine->resume();
  EXPECT_EQ(read_text((*streams)[0]), "only this");
  EXPECT_EQ(read_ids((*streams)[1]).size(), 90u);
  EXPECT_GE((*streams)[0].end().times.first_token, (*streams)[1].end().times.admitted);
}

// Nobody can compute masks while the test holds the lock that the grammar's matchers share.
class SlowGrammar {
 public:
  explicit SlowGrammar(StandInEngine& engine, const Compiled& compiled)
      : workspace_(compiled->workspace(engine->token_trie())), lock_(workspace_->mutex) {}
  void release() { lock_.unlock(); }

 private:
  std::shared_ptr<grammar::Workspace> workspace_;
  std::unique_lock<std::mutex> lock_;
};

TEST(EngineConstraint, ALateMaskDelaysItsOwnRequestOnly) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  engine->pause();
  GenerationRequest constrained{.prompt = {5}, .max_tokens = 30}, free = constrained;
  constrained.grammar = regex("[a-f]*");
  free.ignore_end = true;
  auto waiting = engine->submit(constrained), running = engine->submit(free);
  ASSERT_TRUE(waiting.ok() && running.ok());
  SlowGrammar slow(engine, constrained.grammar);
  engine->resume();
  EXPECT_EQ(read_ids(*running), engine.alone(free));
  EXPECT_FALSE(waiting->ended());
  // New requests are served, too, and those of other grammars.
  EXPECT_EQ(read_ids(engine->submit(free).value()), engine.alone(free));
  GenerationRequest other = constrained;
  other.grammar = regex("[g-k]*");
  EXPECT_EQ(read_ids(engine->submit(other).value()), masked_alone(engine.options(), other));
  EXPECT_FALSE(waiting->ended());
  slow.release();
  EXPECT_EQ(read_ids(*waiting), masked_alone(engine.options(), constrained));
}

TEST(EngineConstraint, ARequestIsCancelledWhileItsMaskIsComputed) {
  StandInEngine engine = engine_with(constrained_options(kConstrainedLimits));
  engine->pause();
  GenerationRequest constrained{.prompt = {5}, .max_tokens = 30}, free = constrained;
  constrained.grammar = regex("[a-f]*");
  free.ignore_end = true;
  auto cancelled = engine->submit(constrained), running = engine->submit(free);
  SlowGrammar slow(engine, constrained.grammar);
  engine->resume();
  EXPECT_TRUE(cancelled->next());
  engine->cancel(cancelled->request());
  EXPECT_EQ(read_ids(*running), engine.alone(free));
  EXPECT_TRUE(comes_true([&] { return engine->metrics().finished_cancelled.value() == 1; }));
  slow.release();
  EXPECT_EQ(read_ids(engine->submit(free).value()), engine.alone(free));
}

// Streams with grammars of one engine used to fall into two groups that took turns, each with steps
// of its own, as soon as one of them was late once.
TEST(EngineConstraint, ALateRequestJoinsTheOthersAgain) {
  const StandInOptions options = constrained_options(kConstrainedLimits);
  testing::StandInExecutor executor(options);
  testing::EngineRooms rooms(kConstrainedLimits);
  StepLoop steps(rooms.links(executor), true);
  RequestId next_id = 1;
  const auto accept = [&](GenerationRequest request) {
    request.prompt = {5};
    request.max_tokens = 20;
    request.ignore_end = true;
    rooms.publisher.posted(1);
    rooms.requests.accept(ActiveRequest::create(std::move(request), {.id = next_id++,
                                                                     .limits = kConstrainedLimits,
                                                                     .tokenizer = &tokenizer(),
                                                                     .trie = trie()})
                              .value());
  };
  const Compiled late = regex("[a-f]*");
  accept({.grammar = regex("[g-k]*")});
  accept({.grammar = late});
  accept({});
  // How many requests the next step has.
  const auto begin = [&]() -> uint64_t {
    const uint64_t before = executor.rows;
    EXPECT_TRUE(steps.resume_constrained().ok());
    EXPECT_TRUE(*steps.begin());
    return executor.rows - before;
  };
  // Leaves the workers more than enough time.
  const auto finish = [&] {
    EXPECT_TRUE(steps.finish().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  EXPECT_EQ(begin(), 3u);
  EXPECT_EQ(begin(), 1u) << "the others wait for their masks";
  {
    const auto workspace = late->workspace(trie());
    const std::lock_guard lock(workspace->mutex);
    finish();
    EXPECT_EQ(begin(), 2u) << "one is late";
  }
  finish();
  EXPECT_EQ(begin(), 1u) << "it is ready, and waits for the other one";
  finish();
  EXPECT_EQ(begin(), 3u);
  while (!steps.idle()) finish();
  rooms.requests.end_all(FinishReason::kCancelled, "");
}

TEST(EngineConstraint, AGrammarMayBeginAfterAStringThatTheModelWrites) {
  StandInOptions options = constrained_options(kConstrainedLimits);
  for (const bool speculates : {false, true}) {
    if (speculates) options.speculation = {.method = SpeculationMethod::kNgram, .max_proposed = 4};
    // The stand-in samples these in turn, as far as masks allow it.
    options.script =
        tokenizer().encode("I say <call>yes or no, and then more of it", {.add_bos = false});
    StandInEngine engine = engine_with(options);
    GenerationRequest request{.prompt = {5}, .max_tokens = 60, .grammar_after = "<call>"};
    request.grammar = regex("(yes|no) it is [0-9]{3}");
    auto stream = engine->submit(request);
    const std::string text = read_text(*stream);
    EXPECT_THAT(text, ::testing::MatchesRegex("I say <call>(yes|no) it is [0-9][0-9][0-9]"));
    EXPECT_EQ(stream->end().reason, FinishReason::kStop);
    // Without the string, nothing is constrained.
    request.grammar_after = "<other>";
    EXPECT_EQ(read_ids(engine->submit(request).value()).size(), 60u);
  }
}

// Llama 3 has no mark: a reply that begins as a call does is one.
TEST(EngineConstraint, AGrammarMayBeginWithTheStringThatOpensTheReply) {
  const auto reply_to = [](const char* script) {
    StandInOptions options = constrained_options(kConstrainedLimits);
    options.script = tokenizer().encode(script, {.add_bos = false});
    StandInEngine engine = engine_with(options);
    GenerationRequest request{.prompt = {5},
                              .max_tokens = 60,
                              .grammar_after = "call ",
                              .grammar_opens_text = true,
                              .grammar_tag = "<tag>"};
    request.grammar = regex("call (yes|no) it is [0-9]{3}");
    auto stream = engine->submit(request);
    return read_text(*stream);
  };
  const auto is_call = ::testing::MatchesRegex("[ \n]*(<tag>)?call (yes|no) it is [0-9][0-9][0-9]");
  EXPECT_THAT(reply_to("call yes or no, and more"), is_call);
  EXPECT_THAT(reply_to("\n call no, and more"), is_call);
  EXPECT_THAT(reply_to("<tag>call no, and more"), is_call);
  EXPECT_THAT(reply_to("I call you"), ::testing::Not(is_call));
  EXPECT_THAT(reply_to("calls"), ::testing::Not(is_call));
  EXPECT_THAT(reply_to("<tag>I call you"), ::testing::Not(is_call));
}

// ---- The constraint alone ----

// A token that has the end of the string and more must continue as the grammar wants.
TEST(GrammarTrigger, TokensThatCrossTheBorderAreCheckedByTheGrammar) {
  const auto vocabulary = grammar::TokenTrie::create(
      [] {
        std::vector<std::string> bytes(tokenizer().size());
        for (TokenId id = 0; id < bytes.size(); ++id) bytes[id] = tokenizer().piece(id);
        return bytes;
      }(),
      {});
  // Some token of at least two letters, cut in the middle.
  TokenId crossing = 0;
  while (vocabulary->bytes(crossing).size() < 3 || vocabulary->bytes(crossing)[0] < 'a' ||
         vocabulary->bytes(crossing)[1] < 'a')
    ++crossing;
  const std::string piece(vocabulary->bytes(crossing)), rest = piece.substr(1);
  std::string pattern;
  for (const char byte : rest) pattern += std::string("[") + byte + "]";
  const std::string before = "<<" + piece.substr(0, 1);
  const auto allowed = [&](const std::string& wanted, const Compiled& compiled) {
    GrammarTrigger trigger({.text = wanted}, *vocabulary, tokenizer());
    for (const TokenId id : tokenizer().encode("<<", {.add_bos = false}))
      EXPECT_FALSE(trigger.push(id));
    std::vector<uint32_t> bits(vocabulary->mask_words(), ~0u);
    trigger.mask(grammar::Matcher(compiled, vocabulary), bits);
    return (bits[crossing / 32] >> crossing % 32 & 1) != 0;
  };
  EXPECT_TRUE(allowed(before, regex((pattern + "!").c_str())));
  EXPECT_FALSE(allowed(before, regex("[0-9]+")));
  EXPECT_TRUE(allowed("<>" + before, regex("[0-9]+"))) << "the string has not begun";
}

Constraint::Options constraint_options(const Compiled& compiled, uint32_t vocabulary = 0) {
  return {.grammar = compiled, .trie = trie(), .tokenizer = &tokenizer(), .vocabulary = vocabulary};
}

bool has_bit(std::span<const uint32_t> mask, TokenId id) {
  return (mask[id / 32] >> id % 32 & 1) != 0;
}

TEST(Constraint, GuessesThatTheGrammarRefusesAreCutWithWhatFollowsThem) {
  const TokenId a = tokenizer().encode("xa", {.add_bos = false}).back();
  const TokenId b = tokenizer().encode("xb", {.add_bos = false}).back();
  const TokenId z = tokenizer().encode("xz", {.add_bos = false}).back();
  Constraint constraint(constraint_options(regex("[ab]*a")));
  const TokenId end = trie()->end_tokens().front();
  constraint.take({}, std::vector<TokenId>{a, b, z, a});
  constraint.advance();
  EXPECT_EQ(std::vector<TokenId>(constraint.guesses().begin(), constraint.guesses().end()),
            (std::vector<TokenId>{a, b}));
  EXPECT_FALSE(has_bit(constraint.mask(0), end));
  EXPECT_TRUE(has_bit(constraint.mask(1), end)) << "after a";
  EXPECT_FALSE(has_bit(constraint.mask(2), end)) << "after ab";
  // A tree: the second branch stays, with its place among those that are left.
  constraint.take({}, std::vector<TokenId>{z, a, b, a},
                  std::vector<uint32_t>{kNoParent, 0, kNoParent, 2});
  constraint.advance();
  EXPECT_EQ(std::vector<TokenId>(constraint.guesses().begin(), constraint.guesses().end()),
            (std::vector<TokenId>{b, a}));
  EXPECT_EQ(std::vector<uint32_t>(constraint.parents().begin(), constraint.parents().end()),
            (std::vector<uint32_t>{kNoParent, 0}));
  EXPECT_FALSE(has_bit(constraint.mask(1), end)) << "after b";
  EXPECT_TRUE(has_bit(constraint.mask(2), end)) << "after ba";
}

// A grammar made for it can take seconds for a single mask.
TEST(Constraint, AGrammarThatTakesTooLongIsGivenUp) {
  Constraint::Options options = constraint_options(regex("[ab]*"));
  EXPECT_FALSE(Constraint(options).fault());
  options.most_seconds = 0;
  const Constraint constraint(options);
  ASSERT_TRUE(constraint.fault());
  EXPECT_THAT(*constraint.fault(), HasSubstr("too long"));
}

TEST(Constraint, MasksAreAsLongAsTheModelsVocabulary) {
  const uint32_t padded = tokenizer().size() + 100;
  const Constraint constraint(constraint_options(regex("[ab]*"), padded));
  ASSERT_EQ(constraint.mask(0).size(), (padded + 31) / 32);
  for (TokenId id = tokenizer().size(); id < padded; ++id)
    EXPECT_FALSE(has_bit(constraint.mask(0), id));
}

}  // namespace
}  // namespace hearth
