// Sessions that prepare their steps: what the models of a session run is compiled beforehand.
#include "engine/prepare_steps.h"

#include "engine/open_model_file.h"
#include "engine/session.h"
#include "models/default_model.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

class PrepareStepsTest : public GpuTest {
 protected:
  static SessionOptions small_session() {
    SessionOptions options;
    options.context = 128;
    options.max_sequences = 2;
    options.max_step_tokens = 32;
    options.scored_rows = 8;
    options.prepare_steps = true;
    return options;
  }

  // The tokens of a request.
  static std::vector<TokenId> generate(Engine& engine, GenerationRequest request) {
    request.prompt.assign(21, 300);
    request.max_tokens = 6;
    auto stream = engine.submit(std::move(request));
    EXPECT_TRUE(stream.ok()) << stream.error().message;
    std::vector<TokenId> ids;
    while (stream.ok()) {
      const auto token = stream->next();
      if (!token) break;
      ids.push_back(token->id);
    }
    return ids;
  }

  // Opens a session and generates with everything that may need kernels of its own. Returns how
  // many pipelines were created after the preparation.
  static size_t created_late(const SessionOptions& options) {
    auto file = ModelFile::from_memory(default_model(), std::string(default_model_name()));
    EXPECT_TRUE(file.ok());
    auto session = Session::open(std::move(*file), options);
    EXPECT_TRUE(session.ok()) << session.error().message;
    if (!session.ok()) return 0;
    // On a GPU the rest is compiled while steps run.
    while (!is_cpu((*session)->device().caps()) && !(*session)->preparation()->progress().done) {
    }
    const size_t prepared = (*session)->pipelines().size();
    Engine& engine = (*session)->engine();
    EXPECT_FALSE(generate(engine, {.sampling = {.temperature = 0}}).empty());
    EXPECT_FALSE(generate(engine, {.sampling = {.temperature = 0.8f}}).empty());
    if (options.amateur.empty()) {
      EXPECT_FALSE(generate(engine, {.contrastive_search = {.alpha = 0.6f, .top_k = 4}}).empty());
    }
    EXPECT_EQ((*session)->runner().stalled_steps(), 0u);
    return (*session)->pipelines().size() - prepared;
  }
};

TEST_F(PrepareStepsTest, ContrastiveSearchIsPrepared) {
  EXPECT_EQ(created_late(small_session()), 0u);
}

TEST_F(PrepareStepsTest, ADraftModelIsPrepared) {
  SessionOptions options = small_session();
  options.speculation.method = SpeculationMethod::kDraft;
  EXPECT_EQ(created_late(options), 0u);
}

TEST_F(PrepareStepsTest, AnAmateurIsPrepared) {
  SessionOptions options = small_session();
  options.amateur = std::string(HEARTH_SOURCE_DIR) + "/models/default/hearth-tiny-Q8_0.gguf";
  EXPECT_EQ(created_late(options), 0u);
}

TEST_F(PrepareStepsTest, NeedsFollowFromTheSession) {
  const StepLimits limits{.sequences = 2, .candidates = 8}, without{.sequences = 2};
  SessionOptions options;
  EXPECT_TRUE(session_needs(options, limits).candidates);
  EXPECT_FALSE(session_needs(options, without).candidates);
  EXPECT_FALSE(session_needs(options, limits).trees);
  options.speculation.method = SpeculationMethod::kTree;
  EXPECT_TRUE(session_needs(options, limits).trees);
  EXPECT_TRUE(companion_needs(options, CompanionRole::kAmateur).trees);
  EXPECT_FALSE(companion_needs(options, CompanionRole::kDraft).trees);
  EXPECT_FALSE(companion_needs(options, CompanionRole::kDraft).extras);
}

}  // namespace
}  // namespace hearth::testing
