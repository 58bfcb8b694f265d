// A model on a device writes JSON for a schema: it satisfies the schema, and its ids are those of
// masking the logits on the host, token by token.
#include <nlohmann/json.hpp>

#include "engine/grammar_vocabulary.h"
#include "engine/text/vocabulary.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kContext = 192, kWritten = 90, kSequences = 3;

constexpr const char* kSchema = R"({
  "type": "object", "additionalProperties": false,
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 16},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "kind": {"enum": ["dog", "cat", "fox"]},
    "friends": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2}},
  "required": ["name", "age", "kind", "friends"]})";

class ConstraintModelTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    StepRunnerOptions options;
    options.limits = {.rows = kContext,
                      .sequences = kSequences,
                      .logit_rows = kSequences + 12,
                      .context = kContext,
                      .masks = kSequences + 12,
                      .deterministic = true};
    options.slots = kSequences;
    options.kv_blocks = kSequences * kContext / kTokensPerBlock;
    auto opened = TinyModel::open(device(), pipelines(), options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    tiny_ = std::move(*opened);
    tokenizer_ = Tokenizer::create(read_vocabulary(*tiny_.file).value()).value();
    grammar_ = grammar::Grammar::compile_json_schema(kSchema, {.max_whitespace = 0}).value();
  }

  std::vector<TokenId> prompt(const char* text) const { return tokenizer_->encode(text); }

  // The logits after these tokens, computed from nothing.
  std::vector<float> logits_after(const std::vector<TokenId>& tokens) {
    StepBatch batch;
    std::vector<BlockId> blocks(kContext / kTokensPerBlock);
    for (uint32_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
    batch.add_sequence(0, tokens, blocks);
    batch.sample(static_cast<uint32_t>(tokens.size()) - 1, {});
    const auto ticket = tiny_.runner->submit(batch);
    EXPECT_TRUE(ticket.ok()) << ticket.error().message;
    EXPECT_TRUE(tiny_.runner->wait(*ticket).ok());
    return tiny_.runner->read_logits(1).value();
  }

  // The most probable token that the grammar allows, again and again.
  std::vector<TokenId> masked_on_the_host(std::vector<TokenId> tokens) {
    const size_t prompt_tokens = tokens.size();
    grammar::Matcher matcher(grammar_, make_token_trie(*tokenizer_));
    const auto generated = [&] {
      return std::vector<TokenId>(tokens.begin() + static_cast<std::ptrdiff_t>(prompt_tokens),
                                  tokens.end());
    };
    for (;;) {
      for (const TokenId id : matcher.forced_tokens([&](std::string_view text) {
             return tokenizer_->encode(text, {.add_bos = false});
           })) {
        tokens.push_back(id);
        matcher.accept(id);
        if (generated().size() == kWritten) return generated();
      }
      const std::vector<float> logits = logits_after(tokens);
      std::optional<TokenId> best;
      bool goes_on = false;
      for (TokenId id = 0; id < tokenizer_->size(); ++id) {
        if (!matcher.allows(id)) continue;
        goes_on |= !tokenizer_->ends_generation(id);
        if (!best || logits[id] > logits[*best]) best = id;
      }
      if (!goes_on) return generated();
      tokens.push_back(*best);
      matcher.accept(*best);
      if (generated().size() == kWritten || tokenizer_->ends_generation(*best)) return generated();
    }
  }

  std::unique_ptr<Engine> engine(const SpeculationOptions& speculation = {}) const {
    const StepRunnerOptions& made_for = tiny_.runner->options();
    return std::make_unique<Engine>(*tiny_.runner, tokenizer_.get(),
                                    EngineOptions{.limits = {.max_sequences = kSequences,
                                                             .max_step_tokens = kContext,
                                                             .context = kContext,
                                                             .pool_blocks = made_for.kv_blocks,
                                                             .max_proposed = 12},
                                                  .vocabulary = tiny_.model->config().vocabulary,
                                                  .speculation = speculation,
                                                  .check_integrity = true});
  }

  TinyModel tiny_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const grammar::Grammar> grammar_;
};

TEST_F(ConstraintModelTest, WritesJsonForTheSchemaAsMaskingOnTheHostWould) {
  const std::vector<const char*> prompts = {"Once upon a time", "There was a dog. ", "The fox"};
  std::vector<std::vector<TokenId>> expected;
  for (const char* text : prompts) expected.push_back(masked_on_the_host(prompt(text)));
  for (const bool speculates : {false, true}) {
    SCOPED_TRACE(speculates);
    const auto running =
        engine({.method = speculates ? SpeculationMethod::kNgram : SpeculationMethod::kNone,
                .max_proposed = 4});
    std::vector<TokenStream> streams;
    for (const char* text : prompts) {
      GenerationRequest request{.prompt = prompt(text), .max_tokens = kWritten, .grammar = grammar_};
      request.sampling.temperature = 0;
      streams.push_back(running->submit(std::move(request)).value());
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
      std::vector<TokenId> ids;
      std::string text;
      while (const auto token = streams[i].next()) {
        ids.push_back(token->id);
        text += token->text;
      }
      text += streams[i].end().text;
      EXPECT_EQ(ids, expected[i]) << text;
      ASSERT_EQ(streams[i].end().reason, FinishReason::kStop) << text;
      const auto json = nlohmann::json::parse(text, nullptr, false);
      ASSERT_TRUE(json.is_object()) << text;
      EXPECT_EQ(json.size(), 4u);
      EXPECT_TRUE(json["name"].is_string() && !json["name"].get<std::string>().empty()) << text;
      EXPECT_TRUE(json["age"].is_number_integer() && json["age"] >= 0 && json["age"] <= 120)
          << text;
      EXPECT_TRUE(json["kind"] == "dog" || json["kind"] == "cat" || json["kind"] == "fox") << text;
      EXPECT_TRUE(json["friends"].is_array() && json["friends"].size() <= 2) << text;
    }
    EXPECT_GT(running->metrics().forced_tokens.value(), 20u);
  }
}

TEST_F(ConstraintModelTest, SampledTextsFollowTheSchemaAlongsideOthers) {
  const auto running = engine();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    GenerationRequest free{.prompt = prompt("Once upon a time"), .max_tokens = 30};
    free.sampling.seed = seed;
    free.ignore_end = true;
    GenerationRequest constrained = free;
    constrained.max_tokens = kWritten;
    constrained.ignore_end = false;
    constrained.grammar = grammar_;
    auto both = running->submit({constrained, free});
    ASSERT_TRUE(both.ok());
    std::string text;
    while (const auto token = (*both)[0].next()) text += token->text;
    text += (*both)[0].end().text;
    if ((*both)[0].end().reason == FinishReason::kStop) {
      EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    }
    while ((*both)[1].next()) {
    }
    EXPECT_EQ((*both)[1].end().generated_tokens, 30u);
  }
}

}  // namespace
}  // namespace hearth::testing
