// Drafts tokens with a second, smaller model: its steps run batched for all requests that ask for
// drafts. It has its own KV blocks, one table per request, and recomputes whatever no longer agrees
// with the request's tokens, so it need not be told what became of its drafts. The requests that
// have gone longest without a draft lose their blocks when others need them.
//
// start() submits the draft model's steps, and collect() reads what they sampled. In between, a
// step of the other model can verify the drafts that only the device knows, if both models' steps
// share the places of sampled ids (StepRunnerOptions::sampled_ids).
//
// A draft is sampled as the request is, with the same noise (docs/sampling.md). So it often matches
// even where the model's choice is random; the output never depends on it. Used by the engine
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/decoding/speculation/proposal.h"
#include "engine/ids.h"
#include "engine/model/step_batch.h"
#include "engine/model/step_executor.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

struct DrafterOptions {
  std::uint32_t slots = 16;       // requests that have blocks at the same time
  std::uint32_t step_rows = 512;  // tokens per step
  std::uint32_t context = 2048;   // tokens per sequence
  std::uint32_t blocks = 1024;
  std::uint32_t vocabulary = 0;  // of the model that judges; other tokens end a draft. 0: not known
  std::uint32_t draft_vocabulary = 0;  // of the draft model; 0: not known
  float min_probability = 0;   // a token that the draft model finds less likely ends a draft
  std::uint32_t branches = 1;  // tokens to propose for each place; more than 1 makes trees
  // The first of the drafted_places() on the device, kMaxProposed for each slot.
  std::uint32_t first_place = 0;
  bool shares_places = false;  // the model that judges reads the same places
};

// Places for the ids that are drafted for as many requests.
constexpr std::uint32_t drafted_places(std::uint32_t slots) { return slots * kMaxProposed; }

// Whether a step can verify drafts that the host has not read: each draft is a chain of as many
// tokens as were asked for, all of which the model that judges has, and that finds them on the
// device. `ids_needed`: a request needs its proposals' ids on the host (needs_proposed_ids()).
bool can_verify_unread(const DrafterOptions& options, bool ids_needed);

struct DraftJob {
  RequestId request = 0;
  std::span<const TokenId> tokens;  // all that the request has, at least one; only start() reads it
  params::SamplingRow sampling;     // of the token that follows them
  std::uint32_t length = 0;         // most levels to draft; at least 1
  std::uint32_t most = 0;           // most tokens to draft, branches included
  // Filled in by start(), with the tokens that the draft model's steps sample, all unread, and by
  // collect(), with their ids as far as they can be proposed. Empty if the prompt is not computed
  // yet.
  std::vector<TokenId> unread;
  Proposal proposal;
};

// What start() did.
struct DraftWork {
  std::uint32_t levels = 0;      // tokens of the longest draft
  std::uint32_t first_rows = 0;  // tokens that the draft model read first
};

class Drafter {
 public:
  // The executor runs the draft model, for this drafter alone, and outlives it.
  Drafter(StepExecutor& executor, const DrafterOptions& options);
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // Submits the steps that draft for these jobs, and waits for all but the last two of them. Long
  // prompts take several calls. REQUIRES: at most `slots` jobs, with different requests; the drafts
  // started before were collected.
  Status start(std::span<DraftJob> jobs);
  // Waits for the steps that start() submitted for the same jobs, and fills in their proposals.
  // After an error of either, the proposals are empty and everything computed so far is forgotten.
  Status collect(std::span<DraftJob> jobs);
  const DraftWork& last_work() const { return work_; }
  const DrafterOptions& options() const { return options_; }

 private:
  struct Sequence {
    RequestId request = 0;
    bool taken = false;
    std::vector<TokenId> tokens;  // whose keys and values are in the blocks
    std::vector<BlockId> blocks;
    std::uint64_t last_use = 0;  // in calls of start()
  };
  struct Active {
    std::size_t job = 0;
    std::uint32_t slot = 0;
    std::uint32_t length = 0;
    std::uint32_t levels = 0;  // submitted
    bool ended = false;
  };
  // A token that could have been drafted instead.
  struct Branch {
    std::size_t job = 0;
    TokenId token = 0;
    std::uint32_t parent = 0;  // the token before it, as an index of the job's proposal
  };

  Status submit_levels(std::span<DraftJob> jobs);
  Status read_level(std::span<DraftJob> jobs);
  bool continues(std::uint32_t level) const;  // some job wants this level
  Status forget_after_error(std::span<DraftJob> jobs, Status status);
  void add_first_level(std::span<DraftJob> jobs);
  bool add_next_level(std::span<const DraftJob> jobs, std::uint32_t level,
                      std::vector<std::size_t>& members);
  void read(std::span<DraftJob> jobs, const StepOutcome& outcome,
            std::span<const std::size_t> members);
  std::uint32_t place(std::uint32_t slot, std::uint32_t level) const {
    return options_.first_place + slot * kMaxProposed + level;
  }
  void keep_computed(std::span<const DraftJob> jobs);
  void add_branches(std::span<DraftJob> jobs);
  void sample_last_row(const DraftJob& job, std::uint32_t slot, std::uint32_t level);
  std::uint32_t find_slot(const DraftJob& job);
  bool grow(Sequence& sequence, std::size_t tokens);
  Sequence* oldest();
  void forget(Sequence& sequence);

  StepExecutor& executor_;
  const DrafterOptions options_;
  std::vector<Sequence> sequences_;  // by slot
  std::unordered_map<RequestId, std::uint32_t> slots_;
  std::vector<BlockId> free_;
  std::uint64_t calls_ = 0;
  DraftWork work_;
  StepBatch batch_;
  std::vector<Active> active_;
  std::vector<Branch> branches_;
  // Levels that were submitted and read in the last start() and its collect(). Up to two are in
  // flight: their members, indices of active_, and their tickets.
  std::uint32_t submitted_ = 0, read_ = 0;
  std::array<std::vector<std::size_t>, StepExecutor::kStepsInFlight> members_;
  std::array<StepTicket, StepExecutor::kStepsInFlight> tickets_;
  std::vector<std::size_t> order_;
};

}  // namespace hearth
