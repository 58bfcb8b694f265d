// What hearth info says about a model that is divided over several devices.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/rank_group.h"
#include "engine/ranks/rank_setup.h"
#include "engine/session.h"
#include "runtime/result.h"

namespace hearth {

struct RankFacts {
  std::string device;
  uint64_t free_bytes = 0;  // for this rank
  ModelShare share;
  RankRoom room;
};

// One entry per device of --devices.
Result<std::vector<RankFacts>> rank_facts(const ModelFile& file, const SessionOptions& options);
void print_ranks(const std::vector<RankFacts>& ranks);
nlohmann::json to_json(const std::vector<RankFacts>& ranks);

}  // namespace hearth
