// How long a step takes on this device with this model, learnt from the steps that were run anyway.
// The scheduler asks it how many prompt tokens fit into a step that may take only so long. Pure:
// the caller measures.
//
// A step's time is taken to be f(rows) + a * prompt_keys + b * decode_keys. f is a table with eight
// sizes per power of two, as steps are recorded in these sizes and kernels jump at the edges of
// their tiles. a and b, the cost of attention per key, are fitted from steps of the same size that
// differ in their keys.
//
// Sizes that were not measured are interpolated. Beyond the largest measured one, time is taken to
// grow in proportion to rows. Real devices do better than that, because part of a step's cost does
// not depend on rows; so a caller that goes by these estimates approaches a time limit from below.
//
// Not thread-safe; never allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hearth {

struct BatchPlan;

// What a step's time depends on.
struct StepLoad {
  std::uint32_t rows = 0;         // tokens, padding included
  std::uint64_t prompt_keys = 0;  // keys that rows of prompt chunks attend to, added up
  std::uint64_t decode_keys = 0;  // and those of all other rows

  void add_prompt(std::uint64_t first_position, std::uint32_t tokens);
  void add_decode(std::uint64_t first_position, std::uint32_t tokens);
};
StepLoad step_load(const BatchPlan& plan);

class StepTimes {
 public:
  static constexpr std::uint32_t kMostRows = 65536;  // larger steps are not counted

  // A step took this long.
  void add(const StepLoad& load, double seconds);
  // The estimate for a step; empty if nothing was measured yet.
  std::optional<double> seconds(const StepLoad& load) const;
  // The most tokens, up to `wanted`, of a prompt chunk from `first_position` on that can be added
  // to `load` so that the step takes at most `limit` seconds. The result fills a recorded size if
  // it is less than `wanted`. 0 if nothing was measured yet.
  std::uint32_t most_prompt_tokens(const StepLoad& load, std::uint64_t first_position,
                                   std::uint32_t wanted, double limit) const;

 private:
  static constexpr std::size_t kSizes = 8 + 8 * 13;  // up to kMostRows
  static constexpr std::uint64_t kLifetime = 4096;   // steps

  // Running means of the steps of one size.
  struct Size {
    std::uint32_t count = 0;
    std::uint64_t last = 0;  // in steps
    double seconds = 0, rows = 0, prompt_keys = 0, decode_keys = 0;
  };

  bool known(const Size& size) const { return size.count > 0 && steps_ - size.last < kLifetime; }
  void fit(const Size& size, const StepLoad& load, double seconds);
  // f() of a measured size.
  double base(const Size& size) const;
  // f() of any number of rows, if anything was measured.
  std::optional<double> base(double rows) const;

  std::array<Size, kSizes> sizes_{};
  std::uint64_t steps_ = 0;
  // Sums for the fit, over steps of all sizes: products of how far keys and time are from their
  // size's mean. Older steps count less and less.
  double prompt_prompt_ = 0, prompt_decode_ = 0, decode_decode_ = 0;
  double prompt_time_ = 0, decode_time_ = 0;
  double per_prompt_key_ = 0, per_decode_key_ = 0;  // a and b, in seconds
};

}  // namespace hearth
