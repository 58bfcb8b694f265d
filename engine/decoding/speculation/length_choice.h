// How many tokens to propose for each request of a step: as many as make the most tokens per
// second, given how likely each is accepted and what a step costs by its number of rows. 0 for all
// if plain decoding is as fast.
//
// The step would give one token for each of its members, in seconds(members). A step that judges n
// proposals takes what waiting for the host and n more rows cost, and gives the members' tokens and
// the sum of the chances that each proposal is accepted. Proposal j of a chain is accepted with the
// request's acceptance to the power of j. The n best chances of all requests are taken, for the
// best n. Pure; reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/speculation/row_costs.h"

namespace hearth {

// A request for which something can be proposed.
struct ProposalChance {
  double acceptance = 0;   // of the next proposed token, if those before it are accepted
  std::uint32_t most = 0;  // tokens that can be proposed
  bool drafted = false;    // each level of its proposals takes a step of the draft model
};

struct StepPrices {
  const RowCosts* ahead = nullptr;    // steps that run while the host prepares the next one
  const RowCosts* waiting = nullptr;  // steps that the host judges before it plans the next one
  double draft_step_seconds = 0;
};

class LengthChoice {
 public:
  // Overwrites `lengths` with a length per chance. `members`: requests that decode in the step,
  // with or without a chance. `most_total`: proposals of all requests together.
  void choose(const StepPrices& prices, std::uint32_t members,
              std::span<const ProposalChance> chances, std::uint32_t most_total,
              std::vector<std::uint32_t>& lengths);

 private:
  struct Next {
    double gain = 0;  // chance that the request's next token is accepted
    std::uint32_t chance = 0;
  };

  std::vector<Next> heap_;
  std::vector<std::uint32_t> order_;  // the chance that each further proposal belongs to
};

}  // namespace hearth
