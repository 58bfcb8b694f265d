// What hearth info says about a model that is divided over several devices.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/rank_group.h"
#include "engine/ranks/rank_setup.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/kernel_bench.h"

namespace hearth {

// How long a decode step takes at best: each rank reads its layers' weights and KV cache, and
// computes, at the rates that were measured on its device just now; one rank after the other, with
// kHandOverSeconds from each to the next and back to the first. Ranks that meet within a step
// compute at the same time, and it takes them as long to meet.
struct RankStepTime {
  uint32_t sequences = 0, tokens = 0;  // tokens: that each sequence has
  uint32_t hand_overs = 0;
  bool at_once = false;  // the ranks compute at the same time
  std::vector<double> rank_seconds = {};
  double seconds() const;
};
// What host threads need to notice that a step is done on one device and to submit it on the next.
// bench --link measures it.
inline constexpr double kHandOverSeconds = 100e-6;

struct RankFacts {
  std::string device;
  uint64_t free_bytes = 0;  // for this rank
  ModelShare share;
  RankRoom room;
  Ceilings ceilings;  // measured
};

// One entry per device of --devices.
Result<std::vector<RankFacts>> rank_facts(const ModelFile& file, const SessionOptions& options);
// Pure.
Result<RankStepTime> rank_step_time(const ModelFile& file, KvFormat kv,
                                    const std::vector<RankFacts>& ranks, uint32_t sequences,
                                    uint32_t tokens);
void print_ranks(const std::vector<RankFacts>& ranks, const std::vector<RankStepTime>& steps);
nlohmann::json to_json(const std::vector<RankFacts>& ranks);
nlohmann::json to_json(const std::vector<RankStepTime>& steps);

}  // namespace hearth
