// Decoding strategies of hearth run, as a user starts them: contrastive search, guidance, beam
// search, contrastive decoding and speculation. That each computes what it should is tested
// elsewhere; here every option has to arrive, to change the text as it should, and to say what it
// cannot do.
#include <fmt/format.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSmallModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";
constexpr const char* kLargeModel =
    HEARTH_SOURCE_DIR "/models/default/hearth-storyteller-Q8_0.gguf";

nlohmann::json decoded(const char* model, std::vector<std::string> options) {
  options.insert(options.begin(), {"run", "-m", model, "-p",
                                   "Lily had a red ball. Tom had a red ball. Lily had a red", "-n",
                                   "16", "--deterministic"});
  return hearth_json(options);
}

nlohmann::json greedy(const char* model) { return decoded(model, {"--temp", "0"})["ids"]; }

std::string decoding_fault(std::vector<std::string> options) {
  options.insert(options.begin(), {"run", "-m", kSmallModel, "-p", "Once", "-n", "2"});
  const Finished result = hearth(options);
  EXPECT_NE(result.exit_code, 0);
  expect_one_line(result.err);
  return result.err;
}

TEST(DecodingCommand, ContrastiveSearchIsTheSameEveryTimeAndNotGreedy) {
  const auto plain = greedy(kSmallModel);
  const auto searched = decoded(kSmallModel, {"--penalty-alpha", "0.9", "--top-k", "4"})["ids"];
  EXPECT_EQ(searched.size(), 16u);
  EXPECT_NE(searched, plain);
  EXPECT_EQ(decoded(kSmallModel, {"--penalty-alpha", "0.9", "--top-k", "4", "--seed", "7"})["ids"],
            searched)
      << "nothing is drawn";
  EXPECT_EQ(decoded(kSmallModel, {"--penalty-alpha", "1e-6", "--top-k", "4"})["ids"], plain)
      << "hardly any penalty";
  for (const char* top_k : {"0", "1", "21", "40"}) {
    const Finished result =
        hearth({"run", "-m", kSmallModel, "Once", "--penalty-alpha", "0.6", "--top-k", top_k});
    EXPECT_EQ(result.exit_code, 2) << top_k;
    expect_one_line(result.err);
    EXPECT_THAT(
        result.err,
        HasSubstr(fmt::format("--penalty-alpha: needs --top-k between 2 and 20, not {} ", top_k)));
  }
  EXPECT_THAT(decoding_fault({"--penalty-alpha", "0.6", "--top-k", "4", "--beams", "2"}),
              HasSubstr("--beams: cannot be combined with --penalty-alpha"));
}

TEST(DecodingCommand, GuidanceMovesAwayFromTheNegativePrompt) {
  const auto plain = greedy(kSmallModel);
  const auto guided = [](const char* scale, std::vector<std::string> more) {
    more.insert(more.end(), {"--temp", "0", "--guidance", scale});
    return decoded(kSmallModel, more)["ids"];
  };
  EXPECT_EQ(guided("1", {"--negative-prompt", "A sad story."}), plain) << "1 is off";
  EXPECT_NE(guided("4", {"--negative-prompt", "Lily had a red"}), plain);
  EXPECT_NE(guided("4", {}), plain) << "away from the prompt's last token";
  EXPECT_THAT(decoding_fault({"--guidance", "2", "--beams", "2"}), HasSubstr("cannot be combined"));
}

TEST(DecodingCommand, BeamsReturnTheBestTextsWithTheirScores) {
  const auto result = decoded(kSmallModel, {"--beams", "4", "--best", "3"});
  EXPECT_EQ(result["beams"], 4);
  const auto& texts = result["texts"];
  ASSERT_EQ(texts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(texts[i]["ids"].size(), 16u);
  EXPECT_GT(texts[0]["score"], texts[1]["score"]);
  EXPECT_GT(texts[1]["score"], texts[2]["score"]);
  EXPECT_NE(texts[0]["ids"], texts[1]["ids"]);
  const auto best = decoded(kSmallModel, {"--beams", "4"})["texts"];
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0]["ids"], texts[0]["ids"]);
  // The fields that hearth run --json always has are those of the best text.
  for (const char* field : {"text", "ids", "finish_reason", "tokens"})
    EXPECT_EQ(result[field], texts[0][field]) << field;
  EXPECT_GT(result["prompt_tokens"], 0);
  EXPECT_GT(result["ttft_seconds"].get<double>(), 0);
  EXPECT_LE(result["ttft_seconds"].get<double>(), result["seconds"].get<double>());
  EXPECT_GT(result["tokens_per_s"].get<double>(), 0);
  EXPECT_THAT(decoding_fault({"--beams", "2", "--best", "3"}), HasSubstr("beams"));
}

TEST(DecodingCommand, TheAmateursTasteIsSubtracted) {
  const auto plain = greedy(kLargeModel);
  EXPECT_NE(decoded(kLargeModel, {"--temp", "0", "--amateur", kSmallModel})["ids"], plain);
  EXPECT_EQ(
      decoded(kLargeModel, {"--temp", "0", "--amateur", kSmallModel, "--cd-beta", "0"})["ids"],
      plain)
      << "nothing of it";
}

TEST(DecodingCommand, SpeculationDoesNotChangeTheText) {
  const auto plain = greedy(kLargeModel);
  const auto drafted = decoded(kLargeModel, {"--temp", "0", "--speculate", "draft"});
  EXPECT_EQ(drafted["ids"], plain);
  EXPECT_GT(drafted["accepted_tokens"], 0) << "the built-in draft model is often right";
  EXPECT_GE(drafted["proposed_tokens"], drafted["accepted_tokens"]);
  const auto looked_up = decoded(kLargeModel, {"--temp", "0", "--speculate", "ngram"});
  EXPECT_EQ(looked_up["ids"], plain);
  EXPECT_GT(looked_up["proposed_tokens"], 0) << "the prompt repeats itself";
  const auto drawn = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--temp", "1", "--seed", "5"});
    return decoded(kLargeModel, more)["ids"];
  };
  EXPECT_EQ(drawn({"--speculate", "draft"}), drawn({})) << "sampled text, too";
}

TEST(DecodingCommand, ACompanionWithAnotherVocabularyIsRefused) {
  constexpr const char* kWithout = HEARTH_SOURCE_DIR "/tests/models/golden/llama";
  EXPECT_THAT(decoding_fault({"--speculate", "draft", "--draft-model", kWithout}),
              HasSubstr("llama cannot draft for hearth-tiny-Q8_0: it has no vocabulary"));
  EXPECT_THAT(decoding_fault({"--amateur", kWithout}),
              HasSubstr("llama cannot be the amateur of hearth-tiny-Q8_0: it has no vocabulary"));
}

// The API accepts these requests, too.
TEST(DecodingCommand, Temperature0ContradictsNoSearch) {
  EXPECT_EQ(decoded(kSmallModel, {"--beams", "2", "--temp", "0"})["ids"],
            decoded(kSmallModel, {"--beams", "2"})["ids"]);
  const auto searched = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--penalty-alpha", "0.6", "--top-k", "4"});
    return decoded(kSmallModel, more)["ids"];
  };
  EXPECT_EQ(searched({"--temp", "0"}), searched({}));
}

TEST(DecodingCommand, ContradictionsAreRefusedInOneLine) {
  EXPECT_THAT(decoding_fault({"--beams", "2", "--temp", "0.7"}), HasSubstr("--temp"));
  EXPECT_THAT(decoding_fault({"--beams", "2", "--speculate", "ngram"}), HasSubstr("--speculate"));
  EXPECT_THAT(decoding_fault({"--beams", "17"}), HasSubstr("between 1 and 16"));
  EXPECT_THAT(decoding_fault({"--beams", "4", "--guidance", "2", "--top-k", "4"}),
              HasSubstr("--beams: cannot be combined with --guidance"));
  EXPECT_THAT(decoding_fault({"--best", "2"}), HasSubstr("only works with --beams"));
  EXPECT_THAT(decoding_fault({"--draft-model", "x.gguf"}), HasSubstr("only works with --spec"));
  EXPECT_THAT(decoding_fault({"--draft-max", "4"}), HasSubstr("only works with --speculate"));
  EXPECT_THAT(decoding_fault({"--draft-max", "4", "--speculate", "off"}),
              HasSubstr("--draft-max: only works with --speculate ngram,"));
  EXPECT_THAT(decoding_fault({"--draft-min-p", "0.5", "--speculate", "ngram"}),
              HasSubstr("--draft-min-p: only works with --speculate draft, tree or auto"));
  EXPECT_THAT(decoding_fault({"--penalty-alpha", "0.6"}), HasSubstr("only works with --top-k"));
  EXPECT_THAT(decoding_fault({"--penalty-alpha", "0.6", "--top-k", "4", "--temp", "0.7"}),
              HasSubstr("--temp"));
  EXPECT_THAT(decoding_fault({"--penalty-alpha", "0.6", "--top-k", "4", "--speculate", "ngram"}),
              HasSubstr("--speculate"));
  EXPECT_THAT(decoding_fault({"--cd-beta", "0.5"}), HasSubstr("only works with --amateur"));
  for (const char* option : {"--guidance", "--ban", "--mirostat"})
    EXPECT_THAT(decoding_fault({option, "2", "--speculate", "ngram"}), HasSubstr("--speculate"))
        << option;
  EXPECT_THAT(decoding_fault({"--dry-base", "2"}), HasSubstr("only works with --dry-multiplier"));
  for (const char* option : {"--amateur", "--draft-model", "--stop", "--ban"})
    EXPECT_THAT(decoding_fault({option, ""}), HasSubstr("the value is empty")) << option;
}

}  // namespace
}  // namespace hearth::testing
