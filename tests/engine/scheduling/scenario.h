// Runs lessons written as text: tests/engine/scenarios/*.txt, one command per line. README.md there
// lists the commands.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/scheduling/simulated_engine.h"

namespace hearth::test {

class Scenario {
 public:
  // Runs a line. Returns what is wrong: the line cannot be read, or its expectation does not hold.
  std::optional<std::string> line(const std::string& text);
  // Runs the remaining requests to their end and checks all outputs.
  std::optional<std::string> finish();
  // Number of `expect` lines so far.
  std::uint32_t expectations() const { return expectations_; }

 private:
  using Words = std::vector<std::string>;
  struct Problem {
    std::string text;
  };

  // These throw Problem; line() catches.
  void set_up(const Words& words);
  void change(const Words& words);
  void add(const Words& words);
  void use_ledger(const Words& words);
  void steps(const Words& words);
  void expect(const Words& words);
  void expect_names(const Words& words, const std::vector<RequestId>& actual);
  void expect_numbers(const Words& words, const std::map<std::string, std::uint64_t>& actual);
  void expect_tokens(const Words& words,
                     const std::vector<std::pair<RequestId, std::uint32_t>>& actual);
  void one_step();
  SimulatedEngine& engine();
  RequestId id(const std::string& name) const;
  std::string names(std::vector<RequestId> ids) const;
  std::vector<RequestId> in_state(SequenceState state);

  SchedulerLimits limits_{.max_sequences = 8,
                          .max_step_tokens = 256,
                          .context = 1024,
                          .pool_blocks = 64,
                          .swap_blocks = 0,
                          .max_queue = 100};
  Policy policy_;
  bool pipelined_ = false;
  std::uint32_t step_us_ = 0, token_us_ = 0;  // what a step takes, if the scheduler is told
  std::unique_ptr<SimulatedEngine> engine_;  // from the first add on
  std::map<std::string, RequestId> ids_;
  std::map<RequestId, std::string> names_;
  std::string refusal_;
  std::uint32_t expectations_ = 0;
};

}  // namespace hearth::test
