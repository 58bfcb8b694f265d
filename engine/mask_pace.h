// Whether steps should wait for requests with a grammar. Such a request cannot be planned before
// its last token is known, so it misses the step that is submitted while its own one runs: it takes
// part in every second step. If each step is planned after the one before it has ended, it takes
// part in every step, and all requests lose the time that the host needs between two steps. This
// compares the two, with times that were measured. Used by the step loop, on the engine thread.
#pragma once

#include <cstddef>

namespace hearth {

class MaskPace {
 public:
  // Whether the next step should be planned only after the end of a step with these members, of
  // which `constrained` have a grammar. More tokens per second decide: members / (run + host) if
  // steps wait, otherwise (members - constrained / 2) / run.
  bool waits(size_t constrained, size_t members) const {
    const auto with_mask = static_cast<double>(constrained), all = static_cast<double>(members);
    return with_mask * run_seconds_ > (2 * all - with_mask) * host_seconds_;
  }

  // A step was planned while the one before it ran.
  void ran_ahead(double run_seconds) {
    follow(run_seconds_, run_seconds);
    // How long the host takes is only known from trying, so one try must not decide for ever.
    host_seconds_ *= kForget;
  }
  // A step was planned after the one before it had ended, and the host took this long from that end
  // until it was submitted.
  void waited(double run_seconds, double host_seconds) {
    follow(run_seconds_, run_seconds);
    follow(host_seconds_, host_seconds);
  }

 private:
  static constexpr double kNewest = 0.25;  // its share in an average
  static constexpr double kForget = 0.99;  // halves in 69 steps

  static void follow(double& average, double newest) {
    average = average == 0 ? newest : average + kNewest * (newest - average);
  }

  double run_seconds_ = 0, host_seconds_ = 0;
};

}  // namespace hearth
