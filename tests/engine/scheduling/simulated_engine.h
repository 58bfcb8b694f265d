// A scheduler on a simulated GPU. Every token place of every block holds a hash of the sequence up
// to that token, which is what KV depends on. A step makes its plan's block moves, writes the
// places of its tokens and then reads every member's whole sequence. The id it samples is a
// function of the last place. So a block that is shared, copied, swapped or reused wrongly shows as
// a wrong value at once, and a request's output is known before it runs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduling/scheduler.h"

namespace hearth::test {

constexpr TokenId kEndToken = 0;

inline std::uint64_t extend_prefix(std::uint64_t prefix, TokenId token) {
  std::uint64_t x = (prefix ^ (token + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 29)) * 0x94d049bb133111eb;
  return (x ^ (x >> 32)) | 1;  // never 0, which means never written
}

// A request as the simulation sees it. All its tokens follow from the prompt.
struct SimulatedRequest {
  std::vector<TokenId> tokens;        // the prompt and the reported tokens
  std::vector<std::uint64_t> prefix;  // hash up to each of them
  std::uint32_t prompt_tokens = 0, max_new_tokens = 0;
  std::uint32_t ends_after = 0;  // generated tokens; 0: when it samples the end token, or never
  std::uint32_t sampled = 0;     // pending tokens included
  std::int32_t priority = 0;
  bool fork = false, ended = false, cancelled = false;
  std::uint64_t arrival = 0, arrival_step = 0;

  std::uint32_t known() const { return prompt_tokens + sampled; }
  void append(TokenId token) {
    prefix.push_back(extend_prefix(prefix.empty() ? 7 : prefix.back(), token));
    tokens.push_back(token);
  }
};

class SimulatedEngine {
 public:
  // An end token is sampled about once in `end_once_in` tokens; 0: never.
  SimulatedEngine(const SchedulerLimits& limits, const Policy& policy,
                  std::uint32_t end_once_in = 0)
      : scheduler(limits, policy),
        end_once_in_(end_once_in),
        pool_(limits.pool_blocks * std::size_t{kTokensPerBlock}),
        host_(limits.swap_blocks * std::size_t{kTokensPerBlock}),
        slots_(limits.max_sequences) {}

  AddResult add(RequestId id, const NewRequest& request, std::uint32_t ends_after = 0) {
    AddResult result = scheduler.add(id, request);
    if (!result.accepted()) return result;
    SimulatedRequest& made = requests[id];
    for (TokenId token : request.prompt) made.append(token);
    made.prompt_tokens = static_cast<std::uint32_t>(request.prompt.size());
    made.max_new_tokens = request.max_new_tokens;
    made.ends_after = ends_after;
    made.priority = request.priority;
    made.fork = request.fork.has_value();
    made.arrival = arrivals_++;
    made.arrival_step = scheduler.totals().steps;
    return result;
  }

  void cancel(RequestId id) {
    requests.at(id).ended = requests.at(id).cancelled = true;
    scheduler.finish(id);
  }

  void set_priority(RequestId id, std::int32_t priority) {
    requests.at(id).priority = priority;
    scheduler.set_priority(id, priority);
  }

  // Plans and runs a step, then reports the tokens of the step before, as the engine does while
  // this one is in flight. Returns the first problem, if there is one.
  std::optional<std::string> step() {
    const BatchPlan& plan = scheduler.plan();
    last_plan = &plan;
    if (auto problem = scheduler.check_integrity()) return problem;
    std::vector<Sampled> sampled;
    if (auto problem = run(plan, sampled)) return problem;
    const bool nothing_in_flight = in_flight_.empty();
    report_tokens();
    if (plan.empty() && nothing_in_flight && live() > 0)
      return "nothing runs although there are requests";
    in_flight_ = std::move(sampled);
    return scheduler.check_integrity();
  }

  // Reports the pending tokens before another step is planned.
  void report_tokens() {
    for (const Sampled& sampled : in_flight_) {
      scheduler.token(sampled.request, sampled.id);
      SimulatedRequest& request = requests.at(sampled.request);
      if (request.ended) continue;
      request.append(sampled.id);
      const std::uint32_t generated =
          static_cast<std::uint32_t>(request.tokens.size()) - request.prompt_tokens;
      if (generated == request.max_new_tokens || generated == request.ends_after ||
          sampled.id == kEndToken) {
        request.ended = true;
        scheduler.finish(sampled.request);
      }
    }
    in_flight_.clear();
  }

  std::uint32_t live() const {
    std::uint32_t count = 0;
    for (const auto& [id, request] : requests) count += request.ended ? 0 : 1;
    return count;
  }

  // Whether everything a request generated is what it generates alone.
  bool output_is_right(const SimulatedRequest& request) const {
    std::uint64_t prefix = 7;
    for (std::size_t i = 0; i < request.tokens.size(); ++i) {
      if (i >= request.prompt_tokens && request.tokens[i] != sample(prefix)) return false;
      prefix = extend_prefix(prefix, request.tokens[i]);
    }
    const std::size_t generated = request.tokens.size() - request.prompt_tokens;
    return request.cancelled || generated == request.max_new_tokens ||
           generated == request.ends_after || request.tokens.back() == kEndToken;
  }

  Scheduler scheduler;
  std::map<RequestId, SimulatedRequest> requests;
  const BatchPlan* last_plan = nullptr;

 private:
  struct Sampled {
    RequestId request = 0;
    TokenId id = 0;
  };

  TokenId sample(std::uint64_t prefix) const {
    const std::uint64_t x = prefix * 0xd1342543de82ef95;
    if (end_once_in_ != 0 && (x >> 40) % end_once_in_ == 0) return kEndToken;
    return static_cast<TokenId>(1 + (x >> 33) % 5000);
  }

  static void move_blocks(const std::vector<BlockMove>& moves,
                          const std::vector<std::uint64_t>& from, std::vector<std::uint64_t>& to) {
    for (const BlockMove& move : moves)
      for (std::uint32_t i = 0; i < kTokensPerBlock; ++i)
        to[std::size_t{move.to} * kTokensPerBlock + i] =
            from[std::size_t{move.from} * kTokensPerBlock + i];
  }

  std::optional<std::string> run(const BatchPlan& plan, std::vector<Sampled>& sampled) {
    move_blocks(plan.swap_out, pool_, host_);
    move_blocks(plan.swap_in, host_, pool_);
    move_blocks(plan.copies, pool_, pool_);
    const auto place = [&](const BatchMember& member, std::uint32_t position) -> std::uint64_t& {
      const BlockId block = plan.block_ids[member.first_block + position / kTokensPerBlock];
      return pool_[std::size_t{block} * kTokensPerBlock + position % kTokensPerBlock];
    };
    const auto wrong = [&](const BatchMember& member, const std::string& what) {
      return "step " + std::to_string(plan.step) + ", request " + std::to_string(member.request) +
             ": " + what;
    };
    // The value that belongs at a position. The id of the newest token may be on the GPU only.
    const auto value = [&](const BatchMember& member, const SimulatedRequest& request,
                           std::uint32_t position) {
      return position < request.prefix.size()
                 ? request.prefix[position]
                 : extend_prefix(request.prefix[position - 1], slots_[member.slot]);
    };
    for (const BatchMember& member : plan.members) {
      const SimulatedRequest& request = requests.at(member.request);
      const std::uint32_t end = member.first_position + member.tokens;
      if (request.ended) return wrong(member, "is planned although it ended");
      if (end > request.known()) return wrong(member, "computes tokens that do not exist");
      if (member.samples != (end == request.known()))
        return wrong(member, "samples at the wrong place");
      if (member.input_on_gpu != (end > request.tokens.size()))
        return wrong(member, "takes its input from the wrong place");
      if (end > request.tokens.size() + 1) return wrong(member, "has two pending tokens");
      for (std::uint32_t i = member.first_position; i < end; ++i)
        place(member, i) = value(member, request, i);
    }
    for (const BatchMember& member : plan.members) {
      SimulatedRequest& request = requests.at(member.request);
      const std::uint32_t end = member.first_position + member.tokens;
      for (std::uint32_t i = 0; i < end; ++i)
        if (place(member, i) != value(member, request, i))
          return wrong(member, "reads the wrong value at position " + std::to_string(i) + " of " +
                                   std::to_string(end));
    }
    // Slots are written last, because this step's inputs were read from them.
    for (const BatchMember& member : plan.members) {
      if (!member.samples) continue;
      SimulatedRequest& request = requests.at(member.request);
      TokenId id = sample(place(member, member.first_position + member.tokens - 1));
      slots_[member.slot] = id;
      ++request.sampled;
      sampled.push_back({member.request, id});
    }
    return std::nullopt;
  }

  std::uint32_t end_once_in_;
  std::vector<std::uint64_t> pool_, host_;  // [blocks, kTokensPerBlock]
  std::vector<TokenId> slots_;
  std::vector<Sampled> in_flight_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace hearth::test
