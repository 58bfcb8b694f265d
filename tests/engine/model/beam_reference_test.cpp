// Beam search on the golden models finds the ids and scores that transformers' own search finds
// (tests/models/golden/beams.json, written by tools/make_golden_beams.py).
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/step_runner.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/model_file.h"
#include "tests/support/golden.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

// Keys and values are in F16 here, which moves a log-probability by up to 0.004 in these models.
constexpr double kScoreMargin = 0.01;

nlohmann::json beam_references() {
  std::ifstream file(golden_models_folder() / "beams.json");
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

// The golden models that were searched; those added since have no references.
std::vector<std::string> searched_model_names() {
  std::set<std::string> names;
  const nlohmann::json references = beam_references();
  if (references.is_object())
    for (const nlohmann::json& search : references["searches"]) names.insert(search["model"]);
  return {names.begin(), names.end()};
}

// Only the end tokens matter: those that the references were made with.
std::unique_ptr<Tokenizer> numbered_tokens(uint32_t count, const std::vector<TokenId>& ends) {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePiece};
  for (uint32_t id = 0; id < count; ++id)
    vocabulary.tokens.push_back({.text = "<" + std::to_string(id) + ">"});
  vocabulary.unknown = 0;
  vocabulary.eos = ends.front();
  vocabulary.end_of_generation = {ends.begin(), ends.end()};
  return Tokenizer::create(std::move(vocabulary)).value();
}

EarlyStopping early_stopping_of(const nlohmann::json& value) {
  if (value.is_string()) return EarlyStopping::kNever;
  return value.get<bool>() ? EarlyStopping::kOn : EarlyStopping::kOff;
}

class BeamReferenceTest : public GpuTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(BeamReferenceTest, FindsWhatTransformersFinds) {
  const nlohmann::json references = beam_references();
  ASSERT_TRUE(references.is_object());
  ASSERT_ASSIGN(const GoldenModel golden, read_golden_model(GetParam()));
  ASSERT_ASSIGN(const std::unique_ptr<ModelFile> file, ModelFile::open(golden.folder));
  ASSERT_ASSIGN(const std::unique_ptr<Model> model,
                Model::load(device(), *file, {.context = golden.context}));
  const StepRunnerOptions options{
      .limits = {.rows = 128, .sequences = 16, .logit_rows = 16, .context = golden.context},
      .slots = 16,
      .kv_blocks = 64};
  ASSERT_ASSIGN(const std::unique_ptr<StepRunner> runner,
                StepRunner::create(device(), pipelines(), *model, options));
  const auto tokenizer =
      numbered_tokens(golden.vocab, references["end_tokens"].get<std::vector<TokenId>>());
  Engine engine(*runner, tokenizer.get(),
                EngineOptions{.limits = {.max_sequences = 16,
                                         .max_step_tokens = 128,
                                         .context = golden.context,
                                         .pool_blocks = 64,
                                         .max_proposed = 0},
                              .vocabulary = golden.vocab,
                              .check_integrity = true});
  struct Search {
    const nlohmann::json* reference;
    std::vector<TokenStream> streams;
  };
  std::vector<Search> searches;
  for (const nlohmann::json& reference : references["searches"]) {
    if (reference["model"] != golden.name) continue;
    GenerationRequest request{.prompt = golden.prompts[reference["prompt"].get<size_t>()],
                              .max_tokens = references["max_new_tokens"]};
    request.beam = {.beams = references["beams"],
                    .length_penalty = reference["length_penalty"],
                    .early_stopping = early_stopping_of(reference["early_stopping"])};
    ASSERT_ASSIGN(std::vector<TokenStream> streams, engine.submit_n(request, request.beam.beams));
    searches.push_back({&reference, std::move(streams)});
  }
  EXPECT_GE(searches.size(), 3u) << "too little is compared";
  for (Search& search : searches) {
    const nlohmann::json& texts = (*search.reference)["texts"];
    ASSERT_EQ(texts.size(), search.streams.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(search.reference->dump() + ", text " + std::to_string(i));
      std::vector<TokenId> ids;
      while (const auto token = search.streams[i].next()) ids.push_back(token->id);
      EXPECT_EQ(ids, texts[i]["ids"].get<std::vector<TokenId>>());
      const GenerationEnd& end = search.streams[i].end();
      ASSERT_TRUE(end.score.has_value()) << end.message;
      EXPECT_NEAR(*end.score, texts[i]["score"].get<double>(), kScoreMargin);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BeamReferenceTest, ::testing::ValuesIn(searched_model_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace hearth::testing
