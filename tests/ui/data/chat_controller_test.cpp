// Conversations with an engine on the stand-in executor, whose answers are known in advance.
#include "ui/data/chat_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/weights/model_file.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The stand-in executor with alternatives: the chosen id and the ids after it, each half as likely.
class TopExecutor : public StepExecutor {
 public:
  explicit TopExecutor(const StandInOptions& options) : stand_in(options) {}

  Result<StepTicket> submit(const StepBatch& batch) override { return stand_in.submit(batch); }
  Result<StepOutcome> wait(const StepTicket& ticket) override {
    HEARTH_ASSIGN(StepOutcome outcome, stand_in.wait(ticket));
    top_.clear();
    for (const params::SamplingResult& result : outcome.sampled)
      for (uint32_t i = 0; i < params::kMaxTopLogprobs; ++i)
        top_.push_back(
            {.id = result.id + i, .logprob = std::log(0.5f) * static_cast<float>(i + 1)});
    outcome.top = top_;
    return outcome;
  }
  Status fork_blocks(std::span<const BlockMove> moves) override {
    return stand_in.fork_blocks(moves);
  }
  Status swap_out(std::span<const BlockMove> moves) override { return stand_in.swap_out(moves); }
  Status swap_in(std::span<const BlockMove> moves) override { return stand_in.swap_in(moves); }
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override {
    return stand_in.set_history(slot, tokens);
  }
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override {
    return stand_in.set_biases(slot, biases);
  }

  StandInExecutor stand_in;

 private:
  std::vector<params::TokenLogprob> top_;
};

class ChatControllerTest : public ::testing::Test {
 protected:
  ChatControllerTest() {
    auto file = ModelFile::open(std::filesystem::path(HEARTH_SOURCE_DIR) /
                                "models/default/hearth-tiny-Q8_0.gguf");
    EXPECT_TRUE(file.ok()) << file.error().message;
    auto vocabulary = read_vocabulary(**file);
    EXPECT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    auto chat = ChatTemplate::create(*vocabulary);
    EXPECT_TRUE(chat.ok()) << chat.error().message;
    template_ = std::move(chat).value();
    auto tokenizer = Tokenizer::create(std::move(vocabulary).value());
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(tokenizer).value();
    options_ = {
        .limits = {.max_sequences = 4, .max_step_tokens = 64, .context = 512, .pool_blocks = 128},
        // Leaves ids after the last one, for alternatives.
        .vocabulary = tokenizer_->size() - 100,
        .script = {}};
    open();
    greedy.sampling.options.temperature = 0;
    greedy.sampling.custom = true;
    greedy.sampling.max_tokens = 40;
  }

  void open(bool paused = false) {
    engine_.reset();
    executor_ = std::make_unique<TopExecutor>(options_);
    engine_ = std::make_unique<Engine>(*executor_, tokenizer_.get(),
                                       EngineOptions{.limits = options_.limits,
                                                     .vocabulary = tokenizer_->size(),
                                                     .start_paused = paused,
                                                     .check_integrity = true});
    model_ = {.engine = engine_.get(),
              .tokenizer = tokenizer_.get(),
              .chat = template_.get(),
              .context = options_.limits.context,
              .generation = model_.generation + 1};
  }

  bool until_ended(const Chat& chat) {
    return comes_true([&] {
      controller.update(&model_, 0);
      return !controller.answering(chat);
    });
  }
  bool until_tokens(const Chat& chat, size_t tokens) {
    return comes_true([&] {
      engine_->step_once();
      controller.update(&model_, 0);
      return chat.exchanges.back().reply.tokens.size() >= tokens;
    });
  }

  // What the stand-in generates after this prompt.
  std::vector<TokenId> alone(std::vector<TokenId> prompt, uint32_t tokens) const {
    return generate_alone(
        options_,
        {.prompt = std::move(prompt), .sampling = {.temperature = 0}, .max_tokens = tokens});
  }
  std::vector<TokenId> prompt_of(const Chat& chat, size_t exchange) const {
    const auto prompt = chat_prompt(chat, exchange, model_);
    EXPECT_TRUE(prompt.ok()) << prompt.error().message;
    return prompt.ok() ? prompt->ids : std::vector<TokenId>();
  }
  static std::vector<TokenId> ids(const ChatReply& reply) {
    std::vector<TokenId> ids;
    for (const ChatToken& token : reply.tokens) ids.push_back(token.id);
    return ids;
  }

  StandInOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<TopExecutor> executor_;
  std::unique_ptr<Engine> engine_;
  ChatModel model_;
  ChatController controller{{}};
  Chat greedy;
};

TEST_F(ChatControllerTest, AnAnswerHasTokensProbabilitiesAndTimes) {
  Chat& chat = controller.new_chat(&greedy);
  EXPECT_EQ(chat.display_title(), "New chat");
  controller.ask(chat, "Tell me about a fox.", model_);
  EXPECT_TRUE(controller.answering(chat));
  EXPECT_NE(controller.request(chat), 0u);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(chat.title, "Tell me about a fox.");
  ASSERT_EQ(chat.exchanges.size(), 1u);
  const ChatReply& reply = chat.exchanges[0].reply;
  const std::vector<TokenId> prompt = prompt_of(chat, 0);
  EXPECT_EQ(ids(reply), alone(prompt, 40));
  EXPECT_EQ(reply.finish, FinishReason::kLength);
  EXPECT_EQ(reply.prompt_tokens, prompt.size());
  EXPECT_EQ(reply.context_tokens(), prompt.size() + 40);
  EXPECT_EQ(reply.kept_tokens, 0u);
  EXPECT_GT(reply.first_token_seconds, 0);
  EXPECT_GT(reply.tokens_per_s, 0);
  // The text consists of the tokens' texts.
  std::string text;
  for (const ChatToken& token : reply.tokens) text += token.text;
  EXPECT_THAT(reply.text, StartsWith(text));
  Detokenizer detokenizer(*tokenizer_);
  std::string expected;
  for (const ChatToken& token : reply.tokens) expected += detokenizer.push(token.id);
  EXPECT_EQ(reply.text, expected + detokenizer.finish());
  for (const ChatToken& token : reply.tokens) {
    ASSERT_GE(token.alternatives.size(), 5u);
    EXPECT_EQ(token.alternatives[0].id, token.id);
    EXPECT_EQ(token.alternatives[1].id, token.id + 1);
    EXPECT_FLOAT_EQ(token.alternatives[1].probability, 0.25f);
    EXPECT_EQ(token.alternatives[1].text, readable_token(*tokenizer_, token.id + 1));
  }
}

TEST_F(ChatControllerTest, TheNextQuestionFollowsTheWholeConversation) {
  Chat& chat = controller.new_chat(&greedy);
  chat.system = "You are brief.";
  controller.ask(chat, "One fox, one kite, one boat, one sea and one wind: what do they do?",
                 model_);
  ASSERT_TRUE(until_ended(chat));
  controller.ask(chat, "Two?", model_);
  ASSERT_TRUE(until_ended(chat));
  ASSERT_EQ(chat.exchanges.size(), 2u);
  const std::string text = tokenizer_->decode(prompt_of(chat, 1), true);
  EXPECT_THAT(text, HasSubstr("You are brief."));
  EXPECT_THAT(text, HasSubstr("One fox"));
  EXPECT_THAT(text, HasSubstr("Two?"));
  EXPECT_EQ(ids(chat.exchanges[1].reply), alone(prompt_of(chat, 1), 40));
  // The first question was in the prefix cache.
  EXPECT_GT(chat.exchanges[1].reply.cached_tokens, 0u);
}

TEST_F(ChatControllerTest, AStoppedAnswerIsKeptAndCanBeContinued) {
  open(/*paused=*/true);
  Chat& chat = controller.new_chat(&greedy);
  chat.sampling.max_tokens = 30;
  controller.ask(chat, "Go on and on.", model_);
  ASSERT_TRUE(until_tokens(chat, 5));
  EXPECT_FALSE(controller.can_continue(chat));
  controller.stop(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  const std::vector<TokenId> before = ids(chat.exchanges[0].reply);
  EXPECT_GE(before.size(), 5u);
  EXPECT_LT(before.size(), 30u);
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kCancelled);
  EXPECT_EQ(describe_end(chat.exchanges[0].reply), "stopped");

  ASSERT_TRUE(controller.can_continue(chat));
  engine_->resume();
  controller.continue_answer(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  const ChatReply& reply = chat.exchanges[0].reply;
  EXPECT_EQ(reply.kept_tokens, before.size());
  EXPECT_EQ(ids(reply), alone(prompt_of(chat, 0), static_cast<uint32_t>(before.size()) + 30));
}

TEST_F(ChatControllerTest, RegeneratingGivesAnotherAnswerUnlessTheSeedIsFixed) {
  Chat& chat = controller.new_chat(nullptr);
  chat.sampling.max_tokens = 20;
  const uint64_t seed = chat.sampling.options.seed;
  controller.ask(chat, "A story.", model_);
  ASSERT_TRUE(until_ended(chat));
  const std::vector<TokenId> first = ids(chat.exchanges[0].reply);
  const uint64_t revision = chat.exchanges[0].revision;
  controller.regenerate(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  ASSERT_EQ(chat.exchanges.size(), 1u);
  EXPECT_NE(ids(chat.exchanges[0].reply), first);
  EXPECT_NE(chat.exchanges[0].revision, revision);
  EXPECT_EQ(chat.sampling.options.seed, seed + 2);
  chat.sampling.new_seed = false;
  chat.sampling.options.seed = seed;
  controller.regenerate(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(ids(chat.exchanges[0].reply), first);
  EXPECT_EQ(chat.sampling.options.seed, seed);
}

TEST_F(ChatControllerTest, TheModelsSamplingDefaultsApplyUnlessTheUserChoseOthers) {
  model_.default_sampling = {.temperature = 0, .top_k = 17};
  Chat& chat = controller.new_chat(nullptr);
  const uint64_t seed = chat.sampling.options.seed;
  chat.sampling.max_tokens = 20;
  controller.ask(chat, "A story.", model_);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(ids(chat.exchanges[0].reply), alone(prompt_of(chat, 0), 20)) << "greedy";
  EXPECT_EQ(chat.sampling.options.top_k, 17u);
  EXPECT_EQ(chat.sampling.options.seed, seed + 1) << "the seed is the chat's own";

  chat.sampling.custom = true;
  chat.sampling.options.top_k = 3;
  controller.regenerate(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(chat.sampling.options.top_k, 3u);
}

TEST_F(ChatControllerTest, AnEditedQuestionDiscardsWhatFollows) {
  Chat& chat = controller.new_chat(&greedy);
  for (const char* question : {"One?", "Two?", "Three?"}) {
    controller.ask(chat, question, model_);
    ASSERT_TRUE(until_ended(chat));
  }
  // Also while an answer is in progress.
  controller.regenerate(chat, model_);
  controller.edit_question(chat, 1, "Two and a half?", model_);
  ASSERT_TRUE(until_ended(chat));
  ASSERT_EQ(chat.exchanges.size(), 2u);
  EXPECT_EQ(chat.exchanges[1].question, "Two and a half?");
  EXPECT_EQ(ids(chat.exchanges[1].reply), alone(prompt_of(chat, 1), 40));
  EXPECT_EQ(chat.title, "One?");
  EXPECT_TRUE(comes_true([&] { return engine_->metrics().running.value() == 0; }));
}

TEST_F(ChatControllerTest, ABranchOfARunningAnswerSharesItsBlocks) {
  open(/*paused=*/true);
  Chat& chat = controller.new_chat(&greedy);
  chat.sampling.max_tokens = 120;
  controller.ask(chat, "A long story about a fox and a kite and a boat and the wide sea, please.",
                 model_);
  ASSERT_TRUE(until_tokens(chat, 20));
  const ChatToken token = chat.exchanges[0].reply.tokens[12];
  const ChatAlternative other = token.alternatives.at(2);
  ASSERT_NE(other.id, token.id);
  Chat& branch = *controller.branch(chat, 0, 12, other, model_);
  EXPECT_EQ(branch.title, chat.title + " (branch)");
  EXPECT_TRUE(controller.answering(chat));
  EXPECT_TRUE(controller.answering(branch));
  ASSERT_TRUE(until_tokens(branch, 14));
  engine_->inspect([&](const Scheduler& scheduler) {
    EXPECT_EQ(scheduler.totals().forks, 1u);
    EXPECT_GE(scheduler.counts().blocks_shared, 1u);
  });
  engine_->resume();
  ASSERT_TRUE(until_ended(branch));
  ASSERT_TRUE(until_ended(chat));

  // Both generate what they would have generated alone.
  std::vector<TokenId> prompt = prompt_of(chat, 0);
  EXPECT_EQ(ids(chat.exchanges[0].reply), alone(prompt, 120));
  const ChatReply& reply = branch.exchanges[0].reply;
  EXPECT_EQ(reply.kept_tokens, 13u);
  std::vector<TokenId> expected = ids(chat.exchanges[0].reply);
  expected.resize(12);
  expected.push_back(other.id);
  prompt.insert(prompt.end(), expected.begin(), expected.end());
  EXPECT_EQ(reply.prompt_tokens, prompt.size());
  for (const TokenId id : alone(prompt, 120)) expected.push_back(id);
  EXPECT_EQ(ids(reply), expected);
  EXPECT_FLOAT_EQ(reply.tokens[12].probability, other.probability);
  EXPECT_EQ(reply.tokens[12].alternatives.size(), token.alternatives.size());
  Detokenizer detokenizer(*tokenizer_);
  std::string text;
  for (const TokenId id : expected) text += detokenizer.push(id);
  EXPECT_EQ(reply.text, text + detokenizer.finish());
}

TEST_F(ChatControllerTest, ABranchOfAnEndedAnswerFindsItsBlocksInTheCache) {
  Chat& chat = controller.new_chat(&greedy);
  controller.ask(chat, "A story about a fox and a kite.", model_);
  ASSERT_TRUE(until_ended(chat));
  controller.ask(chat, "And then?", model_);
  ASSERT_TRUE(until_ended(chat));
  const ChatAlternative other = chat.exchanges[0].reply.tokens[30].alternatives.at(1);
  Chat& branch = *controller.branch(chat, 0, 30, other, model_);
  ASSERT_TRUE(until_ended(branch));
  ASSERT_EQ(branch.exchanges.size(), 1u);
  std::vector<TokenId> prompt = prompt_of(chat, 0);
  for (size_t i = 0; i < 31; ++i) prompt.push_back(branch.exchanges[0].reply.tokens[i].id);
  const std::vector<TokenId> expected = alone(prompt, 40);
  const std::vector<TokenId> all = ids(branch.exchanges[0].reply);
  EXPECT_EQ(std::vector<TokenId>(all.begin() + 31, all.end()), expected);
  // All full blocks before the branch.
  EXPECT_EQ(branch.exchanges[0].reply.cached_tokens,
            (prompt.size() - 1) / kTokensPerBlock * kTokensPerBlock);
  EXPECT_EQ(chat.exchanges.size(), 2u);
}

TEST_F(ChatControllerTest, ABranchToTheEndTokenGeneratesNothing) {
  Chat& chat = controller.new_chat(&greedy);
  controller.ask(chat, "A story.", model_);
  ASSERT_TRUE(until_ended(chat));
  TokenId end = 0;
  while (!tokenizer_->ends_generation(end)) ++end;
  Chat& branch =
      *controller.branch(chat, 0, 3, {.id = end, .text = "<|end|>", .probability = 0}, model_);
  EXPECT_FALSE(controller.answering(branch));
  const ChatReply& reply = branch.exchanges[0].reply;
  EXPECT_EQ(reply.finish, FinishReason::kStop);
  EXPECT_EQ(reply.tokens.size(), 4u);
  EXPECT_EQ(reply.text, tokenizer_->decode(std::vector<TokenId>(
                            {reply.tokens[0].id, reply.tokens[1].id, reply.tokens[2].id})));
  EXPECT_EQ(reply.context_tokens(), prompt_of(chat, 0).size() + 4);
}

TEST_F(ChatControllerTest, TokensOfPartialCharactersAreJoined) {
  // Characters that the vocabulary only has as separate bytes.
  std::vector<TokenId> script = tokenizer_->encode("\u20ac\u20ac!", {.add_bos = false});
  options_.script = script;
  options_.vocabulary = tokenizer_->size();
  open();
  Chat& chat = controller.new_chat(&greedy);
  chat.sampling.max_tokens = static_cast<uint32_t>(script.size());
  controller.ask(chat, "Money?", model_);
  ASSERT_TRUE(until_ended(chat));
  ChatReply& reply = chat.exchanges[0].reply;
  EXPECT_EQ(reply.text, "\u20ac\u20ac!");
  ASSERT_GT(script.size(), 3u) << "the vocabulary has this character as one token; choose another";
  EXPECT_EQ(reply.tokens[0].text, "");
  EXPECT_THAT(readable_token(*tokenizer_, reply.tokens[0].id), HasSubstr("<E2>"));
  // Continuing in the middle of a character keeps its first bytes.
  options_.script.erase(options_.script.begin(), options_.script.begin() + 2);
  open();
  reply.tokens.resize(2);
  ASSERT_TRUE(controller.can_continue(chat));
  chat.sampling.max_tokens = static_cast<uint32_t>(script.size()) - 2;
  controller.continue_answer(chat, model_);
  EXPECT_EQ(chat.exchanges[0].reply.text, "");
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(chat.exchanges[0].reply.text, "\u20ac\u20ac!");
}

TEST_F(ChatControllerTest, AFullContextDropsTheOldestMessagesAndCountsThem) {
  Chat& chat = controller.new_chat(&greedy);
  chat.sampling.max_tokens = 100;
  for (int i = 0; i < 6; ++i) {
    controller.ask(chat, "Tell me of a fox, a kite, a boat, the sea and the wind, at length.",
                   model_);
    ASSERT_TRUE(until_ended(chat));
    const ChatReply& reply = chat.exchanges.back().reply;
    ASSERT_EQ(reply.error, "");
    EXPECT_LE(reply.context_tokens(), 512u);
  }
  EXPECT_EQ(chat.exchanges.front().reply.left_out, 0u);
  EXPECT_GE(chat.exchanges.back().reply.left_out, 2u);
}

TEST_F(ChatControllerTest, ARefusalIsTheReplysErrorAndTheChatGoesOn) {
  Chat& chat = controller.new_chat(&greedy);
  std::string long_question;
  for (int i = 0; i < 600; ++i) long_question += "fox ";
  controller.ask(chat, long_question, model_);
  EXPECT_FALSE(controller.answering(chat));
  ASSERT_EQ(chat.exchanges.size(), 1u);
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kError);
  EXPECT_THAT(chat.exchanges[0].reply.error, HasSubstr("512"));
  // An unanswered question is not part of the next prompt.
  controller.ask(chat, "Hello?", model_);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(chat.exchanges[1].reply.error, "");
  EXPECT_EQ(ids(chat.exchanges[1].reply), alone(prompt_of(chat, 1), 40));
  chat.sampling.options.temperature = -1;
  controller.ask(chat, "Hello again?", model_);
  EXPECT_THAT(chat.exchanges[2].reply.error, HasSubstr("temperature"));
}

TEST_F(ChatControllerTest, ALostDeviceEndsTheAnswerWithItsMessage) {
  open(/*paused=*/true);
  Chat& chat = controller.new_chat(&greedy);
  controller.ask(chat, "A story.", model_);
  ASSERT_TRUE(until_tokens(chat, 3));
  executor_->stand_in.faults.submit.arm(1);
  engine_->resume();
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kError);
  EXPECT_NE(chat.exchanges[0].reply.error, "");
  EXPECT_GE(chat.exchanges[0].reply.tokens.size(), 3u);
}

TEST_F(ChatControllerTest, AnAnswerEndsAsItIsWhenTheModelIsClosed) {
  open(/*paused=*/true);
  Chat& chat = controller.new_chat(&greedy);
  controller.ask(chat, "A story.", model_);
  ASSERT_TRUE(until_tokens(chat, 3));
  const ChatModel old = model_;
  const size_t before = chat.exchanges[0].reply.tokens.size();
  engine_->step_once();
  engine_.reset();
  controller.update(nullptr, 0);
  EXPECT_FALSE(controller.answering(chat));
  EXPECT_EQ(chat.exchanges[0].reply.finish, FinishReason::kCancelled);
  EXPECT_GE(chat.exchanges[0].reply.tokens.size(), before);
  // A new engine answers the next question; the old one is not used any more.
  open();
  controller.stop(chat, model_);
  controller.ask(chat, "Another.", model_);
  EXPECT_NE(model_.generation, old.generation);
  ASSERT_TRUE(until_ended(chat));
  EXPECT_EQ(ids(chat.exchanges[1].reply), alone(prompt_of(chat, 1), 40));
}

TEST_F(ChatControllerTest, ClosingAndRemovingCancelTheRequest) {
  open(/*paused=*/true);
  Chat& chat = controller.new_chat(&greedy);
  controller.ask(chat, "A story.", model_);
  Chat& other = controller.new_chat(&greedy);
  controller.ask(other, "Another.", model_);
  Chat& empty = controller.new_chat(nullptr);
  engine_->step_once();
  EXPECT_TRUE(comes_true([&] { return engine_->metrics().running.value() == 2; }));
  controller.close(chat);
  EXPECT_FALSE(chat.open);
  controller.remove(other);
  controller.close(empty);
  EXPECT_EQ(controller.answers(), 0u);
  ASSERT_EQ(controller.history().chats().size(), 1u);
  EXPECT_EQ(controller.history().removed(), nullptr) << "a blank chat needs no undo";
  engine_->resume();
  EXPECT_TRUE(comes_true([&] { return engine_->metrics().running.value() == 0; }));
}

TEST_F(ChatControllerTest, ACrashLosesTwoSecondsAtMost) {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("hearth_chat_controller_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  open(/*paused=*/true);
  ChatController kept(folder);
  Chat& chat = kept.new_chat(&greedy);
  // What another program would find if this one crashed now.
  const auto tokens_on_disk = [&] {
    kept.history().wait();
    ChatHistory later(folder);
    later.wait();
    EXPECT_EQ(later.chats().size(), 1u);
    return later.chats().empty() ? 0 : later.chats()[0]->exchanges.at(0).reply.tokens.size();
  };
  const auto tokens_at = [&](double now) {
    kept.update(&model_, now);
    return chat.exchanges[0].reply.tokens.size();
  };
  // Single steps, so that the answer does not finish too early.
  const auto step_at = [&](double now, size_t tokens) {
    for (size_t before = tokens_at(now); before < tokens; ++before) {
      engine_->step_once();
      if (!comes_true([&] { return tokens_at(now) > before; })) return false;
    }
    return true;
  };
  kept.update(&model_, 100);
  kept.ask(chat, "A story.", model_);
  EXPECT_EQ(tokens_on_disk(), 0u);
  ASSERT_TRUE(step_at(101.9, 3));
  EXPECT_EQ(tokens_on_disk(), 0u);
  // Saved even though nothing new has arrived.
  kept.update(&model_, 102.1);
  EXPECT_EQ(tokens_on_disk(), 3u);
  ASSERT_TRUE(step_at(103, 4));
  EXPECT_EQ(tokens_on_disk(), 3u);
  engine_->resume();
  EXPECT_TRUE(comes_true([&] {
    kept.update(&model_, 103.5);
    return !kept.answering(chat);
  }));
  EXPECT_EQ(tokens_on_disk(), 40u) << "the end is saved immediately";
  // A draft is saved, too, after a while.
  chat.draft = "And th";
  kept.mark_unsaved(chat);
  kept.update(&model_, 104);
  kept.update(&model_, 107);
  kept.history().wait();
  ChatHistory later(folder);
  later.wait();
  EXPECT_EQ(later.chats().at(0)->draft, "And th");
  std::filesystem::remove_all(folder);
}

// A saved chat, and a model whose tokenizer decodes the same ids to different text.
TEST_F(ChatControllerTest, AnAnswerFromAnotherModelStaysAsItIs) {
  Chat& chat = controller.new_chat(nullptr);
  controller.ask(chat, "Go on and on.", model_);
  ASSERT_TRUE(until_tokens(chat, 5));
  controller.stop(chat, model_);
  ASSERT_TRUE(until_ended(chat));
  ChatReply& reply = chat.exchanges[0].reply;
  reply.tokens[1].text = "other";
  reply.text = "Some other text";
  const size_t chats = controller.history().chats().size();
  controller.continue_answer(chat, model_);
  EXPECT_FALSE(controller.answering(chat));
  EXPECT_EQ(controller.branch(chat, 0, 2, {.id = 1, .text = "x", .probability = 0.5f}, model_),
            nullptr);
  EXPECT_EQ(controller.history().chats().size(), chats);
  EXPECT_EQ(reply.text, "Some other text");
  EXPECT_THAT(reply.error, HasSubstr("a different model"));
  controller.regenerate(chat, model_);
  EXPECT_TRUE(controller.answering(chat));
}

}  // namespace
}  // namespace hearth::testing
