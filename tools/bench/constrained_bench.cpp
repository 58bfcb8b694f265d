#include "tools/bench/constrained_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include <fmt/format.h>

namespace hearth {
namespace {

struct StreamsTime {
  double tokens_per_s = 0, steps = 0, forced_share = 0;
};

// Runs `batch` sequences at once. Sampled with a temperature, because the most probable tokens of
// random weights tend to repeat forever.
Result<StreamsTime> time_streams(Engine& engine, uint32_t vocabulary,
                                 const ModelBenchOptions& bench, uint32_t batch,
                                 const std::shared_ptr<const grammar::Grammar>& grammar) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < batch; ++i) {
    std::mt19937 random(i + 1);
    std::uniform_int_distribution<uint32_t> id(0, vocabulary - 1);
    GenerationRequest& request = requests.emplace_back();
    request.max_tokens = bench.tokens;
    request.ignore_end = true;
    request.sampling.seed = i;
    request.grammar = grammar;
    for (uint32_t k = 0; k < std::max(1u, bench.context); ++k) request.prompt.push_back(id(random));
  }
  const Metrics& metrics = engine.metrics();
  const uint64_t steps = metrics.steps.value(), forced = metrics.forced_tokens.value();
  HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
  StreamsTime time;
  for (TokenStream& stream : streams) {
    while (stream.next()) {
    }
    const GenerationEnd& end = stream.end();
    if (end.reason == FinishReason::kError) return Error{ErrorKind::kInternal, end.message};
    // The first tokens may be forced and come in the same moment.
    const double seconds = end.times.last_token - end.times.first_token;
    if (seconds > 0) time.tokens_per_s += (end.generated_tokens - 1) / seconds;
  }
  time.steps = static_cast<double>(metrics.steps.value() - steps);
  time.forced_share = static_cast<double>(metrics.forced_tokens.value() - forced) /
                      (static_cast<double>(batch) * bench.tokens);
  return time;
}

}  // namespace

Result<std::shared_ptr<const grammar::Grammar>> compile_endless(std::string_view schema) {
  constexpr grammar::SchemaOptions kCompact{.max_whitespace = 0, .generates = true};
  HEARTH_TRY(grammar::Grammar::compile_json_schema(schema, kCompact));  // its errors name a path
  return grammar::Grammar::compile_lark(fmt::format("start: text+\ntext: %json {}\n", schema),
                                        kCompact);
}

Result<ConstrainedTime> time_constrained(Session& session, const ModelBenchOptions& bench,
                                         uint32_t batch,
                                         const std::shared_ptr<const grammar::Grammar>& grammar,
                                         const ModelBench::OnRun& on_run) {
  const uint32_t vocabulary = session.model().config().vocabulary;
  // Forced tokens are computed as prompts are, which are not to be steps of their own.
  Policy policy = session.engine().policy();
  policy.phases = Phases::kMixed;
  session.engine().set_policy(policy);
  ConstrainedTime time{.batch = batch, .tokens = bench.tokens};
  double steps = 0, free_steps = 0;
  const uint32_t runs = bench.repetitions + 1;
  // The first run warms up. The two kinds take turns, so that a drift of clocks meets both.
  for (uint32_t run = 0; run < runs; ++run) {
    on_run(run, runs);
    HEARTH_ASSIGN(const StreamsTime free,
                  time_streams(session.engine(), vocabulary, bench, batch, nullptr));
    HEARTH_ASSIGN(const StreamsTime constrained,
                  time_streams(session.engine(), vocabulary, bench, batch, grammar));
    if (run == 0) continue;
    time.free_tokens_per_s += free.tokens_per_s / bench.repetitions;
    time.tokens_per_s += constrained.tokens_per_s / bench.repetitions;
    time.forced_share += constrained.forced_share / bench.repetitions;
    steps += constrained.steps;
    free_steps += free.steps;
  }
  time.steps_share = free_steps > 0 ? steps / free_steps : 0;
  return time;
}

nlohmann::json to_json(const ConstrainedTime& time) {
  return {{"test", "constrained"},
          {"batch", time.batch},
          {"tokens", time.batch * time.tokens},
          {"tokens_per_s", time.tokens_per_s},
          {"unconstrained_tokens_per_s", time.free_tokens_per_s},
          {"ratio", time.ratio()},
          {"forced_share", time.forced_share},
          {"steps_share", time.steps_share}};
}

void print_constrained_header() {
  fmt::print("\n{:<12} {:>6} {:>8} {:>12} {:>14} {:>8} {:>9} {:>9}\n", "test", "batch", "tokens",
             "tokens/s", "unconstrained", "ratio", "forced", "steps");
}

void print(const ConstrainedTime& time) {
  fmt::print("{:<12} {:>6} {:>8} {:>12.1f} {:>14.1f} {:>8.3f} {:>8.1f}% {:>8.1f}%\n", "constrained",
             time.batch, time.batch * time.tokens, time.tokens_per_s, time.free_tokens_per_s,
             time.ratio(), time.forced_share * 100, time.steps_share * 100);
}

}  // namespace hearth
