// The tests of hearth bench that run a loaded model. Each shows its progress and adds its results
// to the report: one per batch size, and one for the prompt.
#pragma once

#include <memory>

#include "engine/decoding/contrastive_options.h"
#include "engine/grammar/grammar.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/model_bench.h"

namespace hearth {

class SessionTests {
 public:
  // REQUIRES: the session was opened with bench_session_options(), or search_session_options() for
  // time_searches(), and for a batch of as many beams for compare_beams().
  SessionTests(Session& session, const ModelBenchOptions& options, BenchReport& report)
      : session_(session), options_(options), report_(report) {}

  Status time_model(const Ceilings& ceilings);
  // Decoding with the grammar against decoding without it.
  Status time_grammar(const std::shared_ptr<const grammar::Grammar>& grammar);
  Status time_speculation();
  Status time_searches(const ContrastiveSearchOptions& search);
  // Where the time of a step goes, instead of tokens per second.
  Status profile_steps(const Ceilings& ceilings);
  Status compare_beams(uint32_t beams);

 private:
  Session& session_;
  const ModelBenchOptions& options_;
  BenchReport& report_;
};

}  // namespace hearth
