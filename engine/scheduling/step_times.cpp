#include "engine/scheduling/step_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

constexpr double kStepTimeWeight = 0.125;  // of a new measurement
// How far one measurement can be from the estimate: a step may have had to record its commands.
constexpr double kMostStepTimeChange = 1.5;
constexpr std::uint32_t kTrustedCount = 3;  // measurements after which a size is trusted alone
constexpr double kForget = 0.995;           // of the fit, per step
// The least share of a step's time that is not attention, whatever the fit says.
constexpr double kLeastBaseShare = 0.1;

std::size_t size_index(std::uint32_t rows) {
  if (rows <= 8) return std::max(rows, 1u) - 1;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(rows - 1)) - 4;  // of 9 to 16: 0
  return 8 + 8 * octave + ((rows - 1) >> octave) - 8;
}

// The largest number of rows of a size.
std::uint32_t size_edge(std::size_t index) {
  if (index < 8) return static_cast<std::uint32_t>(index) + 1;
  const std::size_t octave = (index - 8) / 8, part = (index - 8) % 8;
  return static_cast<std::uint32_t>((9 + part) << octave);
}

// The sum of first + 1, first + 2, ..., first + tokens: each row attends to itself, too.
std::uint64_t keys_of(std::uint64_t first, std::uint64_t tokens) {
  return tokens * first + tokens * (tokens + 1) / 2;
}

}  // namespace

void StepLoad::add_prompt(std::uint64_t first_position, std::uint32_t tokens) {
  rows += tokens;
  prompt_keys += keys_of(first_position, tokens);
}

void StepLoad::add_decode(std::uint64_t first_position, std::uint32_t tokens) {
  rows += tokens;
  decode_keys += keys_of(first_position, tokens);
}

StepLoad step_load(const BatchPlan& plan) {
  StepLoad load{.rows = plan.padding_tokens};
  for (const BatchMember& member : plan.members) {
    if (member.decodes)
      load.add_decode(member.first_position, member.tokens);
    else
      load.add_prompt(member.first_position, member.tokens);
  }
  return load;
}

void StepTimes::add(const StepLoad& load, double seconds) {
  if (load.rows == 0 || load.rows > kMostRows || !(seconds > 0) || !std::isfinite(seconds)) return;
  ++steps_;
  Size& size = sizes_[size_index(load.rows)];
  if (!known(size)) size = {};
  const auto prompt_keys = static_cast<double>(load.prompt_keys);
  const auto decode_keys = static_cast<double>(load.decode_keys);
  size.last = steps_;
  ++size.count;
  // The first step of a size may have taken longer; the second one shows it.
  if (size.count == 1 || (size.count == 2 && seconds < size.seconds)) {
    size.seconds = seconds;
    size.rows = load.rows;
    size.prompt_keys = prompt_keys;
    size.decode_keys = decode_keys;
    return;
  }
  if (size.count == 2) return;
  seconds =
      std::clamp(seconds, size.seconds / kMostStepTimeChange, size.seconds * kMostStepTimeChange);
  fit(size, load, seconds);
  const auto move = [](double& mean, double value) { mean += kStepTimeWeight * (value - mean); };
  move(size.seconds, seconds);
  move(size.rows, load.rows);
  move(size.prompt_keys, prompt_keys);
  move(size.decode_keys, decode_keys);
}

void StepTimes::fit(const Size& size, const StepLoad& load, double seconds) {
  const double prompt = static_cast<double>(load.prompt_keys) - size.prompt_keys;
  const double decode = static_cast<double>(load.decode_keys) - size.decode_keys;
  const double time = seconds - size.seconds;
  const auto add = [](double& sum, double value) { sum = kForget * sum + value; };
  add(prompt_prompt_, prompt * prompt);
  add(prompt_decode_, prompt * decode);
  add(decode_decode_, decode * decode);
  add(prompt_time_, prompt * time);
  add(decode_time_, decode * time);

  // Least squares. If one of the two would cost less than nothing, only the other one counts.
  const auto alone = [](double squares, double times) {
    return squares > 0 ? std::max(0.0, times / squares) : 0.0;
  };
  const double determinant = prompt_prompt_ * decode_decode_ - prompt_decode_ * prompt_decode_;
  per_prompt_key_ = per_decode_key_ = -1;
  if (determinant > 1e-6 * prompt_prompt_ * decode_decode_) {
    per_prompt_key_ = (prompt_time_ * decode_decode_ - decode_time_ * prompt_decode_) / determinant;
    per_decode_key_ = (decode_time_ * prompt_prompt_ - prompt_time_ * prompt_decode_) / determinant;
  }
  if (per_prompt_key_ >= 0 && per_decode_key_ >= 0) return;
  const bool by_prompt = prompt_prompt_ > 0 && per_prompt_key_ >= per_decode_key_;
  per_prompt_key_ = by_prompt ? alone(prompt_prompt_, prompt_time_) : 0;
  per_decode_key_ = by_prompt ? 0 : alone(decode_decode_, decode_time_);
}

double StepTimes::base(const Size& size) const {
  return std::max(
      size.seconds * kLeastBaseShare,
      size.seconds - per_prompt_key_ * size.prompt_keys - per_decode_key_ * size.decode_keys);
}

std::optional<double> StepTimes::base(double rows) const {
  // The nearest measured sizes on both sides, by their mean rows.
  const Size *below = nullptr, *above = nullptr;
  for (const Size& size : sizes_) {
    if (!known(size)) continue;
    if (size.rows <= rows) {
      below = &size;
    } else {
      above = &size;
      break;
    }
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return base(*above);
  const double low = base(*below);
  const double in_proportion = low * rows / below->rows;
  if (above == nullptr) return in_proportion;
  const double share = (rows - below->rows) / (above->rows - below->rows);
  const double between = low + share * (base(*above) - low);
  // A size that was run once or twice may look slower than it is, because its commands were
  // recorded.
  return above->count < kTrustedCount ? std::min(between, in_proportion) : between;
}

std::optional<double> StepTimes::seconds(const StepLoad& load) const {
  const std::optional<double> rows = base(static_cast<double>(load.rows));
  if (!rows) return std::nullopt;
  return *rows + per_prompt_key_ * static_cast<double>(load.prompt_keys) +
         per_decode_key_ * static_cast<double>(load.decode_keys);
}

std::uint32_t StepTimes::most_prompt_tokens(const StepLoad& load, std::uint64_t first_position,
                                            std::uint32_t wanted, double limit) const {
  std::uint32_t tokens = std::min(wanted, kMostRows - std::min(load.rows, kMostRows));
  while (tokens > 0) {
    StepLoad with = load;
    with.add_prompt(first_position, tokens);
    const std::optional<double> estimate = seconds(with);
    if (!estimate) return 0;
    if (*estimate <= limit) return tokens;
    // The next smaller size.
    const std::size_t index = size_index(with.rows);
    const std::uint32_t edge = index == 0 ? 0 : size_edge(index - 1);
    tokens = edge > load.rows ? edge - load.rows : 0;
  }
  return 0;
}

}  // namespace hearth
