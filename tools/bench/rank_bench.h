// hearth bench on several ranks: how fast they are, also compared with one device, and what it
// costs to hand a step from rank to rank.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks/rank_times.h"
#include "engine/session.h"
#include "runtime/result.h"
#include "tools/bench/model_bench.h"

namespace hearth {

struct RankBenchTime {
  ModelTime time;
  std::optional<ModelTime> alone;  // the same on one device
  std::vector<RankTimes> ranks;    // sums over all steps of the timed runs

  // How fast the ranks are compared with one device.
  double ratio() const { return alone ? alone->seconds / time.seconds : 0; }
  // Per step, in seconds: what the host threads of all ranks need to hand it on, and the rest.
  double boundary_seconds() const;
  double device_seconds() const;
};

using RankBenchRun = std::function<void(const std::string& what, uint32_t run, uint32_t runs)>;

// One entry per test, in the order of the options: the prompt, then each batch.
// REQUIRES: the session was opened with bench_session_options(); bench_ranks() also with ranks.
Result<std::vector<RankBenchTime>> bench_ranks(Session& session, const ModelBenchOptions& options,
                                               const RankBenchRun& on_run);
Result<std::vector<ModelTime>> bench_alone(Session& session, const ModelBenchOptions& options,
                                           const RankBenchRun& on_run);

void print_ranks_header();
void print(const RankBenchTime& time);
// How rows went from rank to rank.
std::string describe_rows(const std::vector<RankBenchTime>& times);
nlohmann::json to_json(const RankBenchTime& time);

}  // namespace hearth
