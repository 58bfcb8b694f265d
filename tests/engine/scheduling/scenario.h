// Lessons as text: tests/engine/scenarios/*.txt, a command a line. What a scenario sets up, does
// and expects is listed in tests/engine/scenarios/README.md.
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
  // Runs a line; what is wrong with it or with what it expects, if anything.
  std::optional<std::string> line(const std::string& text);
  // Lets what is left run to its end and looks at all outputs.
  std::optional<std::string> finish();
  // Lines that expected something.
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
  std::unique_ptr<SimulatedEngine> engine_;  // from the first add on
  std::map<std::string, RequestId> ids_;
  std::map<RequestId, std::string> names_;
  std::string refusal_;
  std::uint32_t expectations_ = 0;
};

}  // namespace hearth::test
