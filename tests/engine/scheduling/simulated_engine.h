// A scheduler on a simulated GPU. Every token place of every block holds a hash of the sequence up
// to that token, which is what KV depends on. A step makes its plan's block moves, writes the
// places of its tokens and then reads every member's whole sequence. The id it samples is a
// function of the last place. So a block that is shared, copied, swapped or reused wrongly shows as
// a wrong value at once, and a request's output is known before it runs, whatever is proposed or
// taken back on the way.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduling/scheduler.h"

namespace hearth::test {

constexpr TokenId kEndToken = 0;
// Simulated time per step, also if there is nothing to run.
constexpr std::chrono::milliseconds kStepTime{10};

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
  std::uint32_t pending = 0;     // sampled and not reported
  std::int32_t priority = 0;
  bool fork = false, ended = false, cancelled = false;
  std::uint64_t arrival = 0, arrival_step = 0;

  std::uint32_t committed() const { return static_cast<std::uint32_t>(tokens.size()) + pending; }
  std::uint32_t generated() const {
    return static_cast<std::uint32_t>(tokens.size()) - prompt_tokens;
  }
  std::uint64_t last_prefix() const { return prefix.back(); }
  void append(TokenId token) {
    prefix.push_back(extend_prefix(prefix.empty() ? 7 : prefix.back(), token));
    tokens.push_back(token);
  }
  void truncate(std::uint32_t count) {
    tokens.resize(count);
    prefix.resize(count);
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
    now += kStepTime;
    scheduler.set_time(now);
    const BatchPlan& plan = scheduler.plan();
    last_plan = &plan;
    if (auto problem = scheduler.check_integrity()) return problem;
    std::vector<Sampled> sampled;
    if (auto problem = run(plan, sampled)) return problem;
    if (const StepLoad load = step_load(plan); seconds && load.rows > 0)
      scheduler.took(load, seconds(load));
    const bool nothing_in_flight = in_flight_.empty() && late_.empty();
    report_tokens();
    if (plan.empty() && nothing_in_flight && live() > 0 && !scheduler.window_closes())
      return "nothing runs although there are requests";
    in_flight_ = std::move(sampled);
    return scheduler.check_integrity();
  }

  // Reports what the steps in flight sampled before another step is planned.
  void report_tokens() {
    for (const Late& token : std::exchange(late_, {})) {
      SimulatedRequest& request = requests.at(token.request);
      if (request.ended) continue;
      report_last(token.request, request, token.id);
      if (!request.ended && after_report) after_report(token.request);
    }
    const std::vector<Sampled> reported = std::exchange(in_flight_, {});
    for (const Sampled& sampled : reported) {
      SimulatedRequest& request = requests.at(sampled.request);
      if (request.ended) continue;
      if (sampled.awaits_host) {
        judge(sampled, request);
      } else {
        scheduler.token(sampled.request, sampled.ids[0]);
        --request.pending;
        append(sampled.request, request, sampled.ids[0]);
      }
      if (!late_.empty() && late_.back().request == sampled.request) continue;
      if (!request.ended && after_report && request.pending == 0) after_report(sampled.request);
    }
  }

  // The token that follows these, which is what the request generates next.
  TokenId next_token(std::uint64_t prefix) const { return sample(prefix); }

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
  std::chrono::nanoseconds now{0};
  // Called when the outcome of a request's step has been reported and no other one is in flight:
  // the place to propose tokens or to take some back.
  std::function<void(RequestId)> after_report;
  // Called before an outcome is judged.
  std::function<void(RequestId)> before_judging;
  // Called before a judged request's token is reported; returns whether that happens only after the
  // next plan, as with a mask that is not ready in time.
  std::function<bool(RequestId)> reports_late;
  // How long a step takes; the scheduler is told. Empty: it is not.
  std::function<double(const StepLoad&)> seconds;
  std::uint64_t accepted = 0, rejected = 0, other_branch = 0, late = 0;

 private:
  struct Late {
    RequestId request = 0;
    TokenId id = 0;
  };
  // What a step sampled for one request, with what it was proposed.
  struct Sampled {
    RequestId request = 0;
    bool awaits_host = false;
    std::vector<TokenId> ids;  // after the newest committed token and after each proposed one
    std::vector<TokenId> proposed;
    std::vector<std::uint32_t> parents;  // empty: a chain
  };

  void append(RequestId id, SimulatedRequest& request, TokenId token) {
    request.append(token);
    if (request.generated() != request.max_new_tokens &&
        request.generated() != request.ends_after && token != kEndToken)
      return;
    request.ended = true;
    scheduler.finish(id);
  }

  // Accepts the proposals that are what the request would have sampled, as speculation does.
  void judge(const Sampled& sampled, SimulatedRequest& request) {
    const RequestId id = sampled.request;
    std::vector<std::uint32_t> path;
    TokenId next = sampled.ids[0];
    for (std::uint32_t i = 0; i < sampled.proposed.size(); ++i) {
      const std::uint32_t parent =
          !sampled.parents.empty() ? sampled.parents[i] : (i == 0 ? kNoParent : i - 1);
      if (parent != (path.empty() ? kNoParent : path.back()) || sampled.proposed[i] != next)
        continue;
      path.push_back(i);
      next = sampled.ids[1 + i];
    }
    accepted += path.size();
    rejected += sampled.proposed.size() - path.size();
    if (!path.empty() && path.back() != path.size() - 1) ++other_branch;
    if (sampled.parents.empty()) {
      scheduler.commit(id, static_cast<std::uint32_t>(path.size()));
      scheduler.truncate(id, scheduler.ledger(id)->committed());
    } else {
      scheduler.commit_path(id, path);
    }
    for (const std::uint32_t node : path) {
      append(id, request, sampled.proposed[node]);
      if (request.ended) return;
    }
    if (reports_late && reports_late(id)) {
      ++late;
      late_.push_back({id, next});
      return;
    }
    report_last(id, request, next);
  }

  // The token that follows what was accepted.
  void report_last(RequestId id, SimulatedRequest& request, TokenId token) {
    if (before_judging) before_judging(id);
    scheduler.token(id, token);
    append(id, request, token);
  }

  TokenId sample(std::uint64_t prefix) const {
    const std::uint64_t x = prefix * 0xd1342543de82ef95;
    if (end_once_in_ != 0 && (x >> 40) % end_once_in_ == 0) return kEndToken;
    return static_cast<TokenId>(1 + (x >> 33) % 5000);
  }

  static void move_blocks(std::span<const BlockMove> moves, const std::vector<std::uint64_t>& from,
                          std::vector<std::uint64_t>& to) {
    for (const BlockMove& move : moves)
      for (std::uint32_t i = 0; i < kTokensPerBlock; ++i)
        to[std::size_t{move.to} * kTokensPerBlock + i] =
            from[std::size_t{move.from} * kTokensPerBlock + i];
  }

  std::optional<std::string> run(const BatchPlan& plan, std::vector<Sampled>& sampled) {
    move_blocks(plan.swap_out, pool_, host_);
    move_blocks(plan.swap_in, host_, pool_);
    // Those that may be made together, in another order than listed.
    for (std::span<const BlockMove> copies = plan.copies; !copies.empty();) {
      const std::size_t count = independent_moves(copies);
      std::vector<BlockMove> together(copies.begin(), copies.begin() + count);
      std::ranges::reverse(together);
      move_blocks(together, pool_, pool_);
      copies = copies.subspan(count);
    }
    const auto place = [&](const BatchMember& member, std::uint32_t position) -> std::uint64_t& {
      const BlockId block = plan.block_ids[member.first_block + position / kTokensPerBlock];
      return pool_[std::size_t{block} * kTokensPerBlock + position % kTokensPerBlock];
    };
    const auto wrong = [&](const BatchMember& member, const std::string& what) {
      return "step " + std::to_string(plan.step) + ", request " + std::to_string(member.request) +
             ": " + what;
    };
    // The values that belong at each position of each member.
    std::vector<std::vector<std::uint64_t>> values;
    for (const BatchMember& member : plan.members) {
      const SimulatedRequest& request = requests.at(member.request);
      const std::uint32_t end = member.first_position + member.tokens;
      const std::uint32_t certain = end - member.proposed;  // committed tokens
      if (request.ended) return wrong(member, "is planned although it ended");
      if (certain > request.committed()) return wrong(member, "computes tokens that do not exist");
      if (member.samples != (certain == request.committed()))
        return wrong(member, "samples at the wrong place");
      if (member.input_on_gpu != (certain > request.tokens.size()))
        return wrong(member, "takes its input from the wrong place");
      if (certain > request.tokens.size() + 1) return wrong(member, "has two pending tokens");
      std::vector<std::uint64_t>& value = values.emplace_back(
          request.prefix.begin(), request.prefix.begin() + member.first_position);
      for (std::uint32_t i = member.first_position; i < end; ++i) {
        const TokenId id = member.input_on_gpu && i + 1 == certain
                               ? slots_[member.slot]
                               : plan.ids[member.first_id + i - member.first_position];
        if (i < certain && i < request.tokens.size() && id != request.tokens[i])
          return wrong(member, "has the wrong id at position " + std::to_string(i));
        std::uint32_t parent = i - 1;
        if (i >= certain && member.tree) {
          parent = plan.parents[member.first_parent + i - certain];
          parent = parent == kNoParent ? certain - 1 : certain + parent;
        }
        value.push_back(extend_prefix(i == 0 ? 7 : value[parent], id));
        place(member, i) = value.back();
      }
    }
    for (std::size_t m = 0; m < plan.members.size(); ++m)
      for (std::uint32_t i = 0; i < values[m].size(); ++i)
        if (place(plan.members[m], i) != values[m][i])
          return wrong(plan.members[m], "reads the wrong value at position " + std::to_string(i) +
                                            " of " + std::to_string(values[m].size()));
    // Slots are written last, because this step's inputs were read from them.
    for (std::size_t m = 0; m < plan.members.size(); ++m) {
      const BatchMember& member = plan.members[m];
      if (!member.samples) continue;
      Sampled& made = sampled.emplace_back();
      made.request = member.request;
      made.awaits_host = member.awaits_host;
      for (std::size_t i = values[m].size() - member.proposed - 1; i < values[m].size(); ++i)
        made.ids.push_back(sample(values[m][i]));
      const auto last_ids = plan.ids.begin() + member.first_id + member.tokens;
      made.proposed.assign(last_ids - member.proposed, last_ids);
      if (member.tree)
        made.parents.assign(plan.parents.begin() + member.first_parent,
                            plan.parents.begin() + member.first_parent + member.proposed);
      if (member.awaits_host) continue;
      slots_[member.slot] = made.ids[0];
      ++requests.at(member.request).pending;
    }
    return std::nullopt;
  }

  std::uint32_t end_once_in_;
  std::vector<std::uint64_t> pool_, host_;  // [blocks, kTokensPerBlock]
  std::vector<TokenId> slots_;
  std::vector<Sampled> in_flight_;
  std::vector<Late> late_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace hearth::test
