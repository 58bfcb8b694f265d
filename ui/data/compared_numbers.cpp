#include "ui/data/compared_numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/data/axis.h"

namespace hearth {
namespace {

// Differences below these are not worth a word.
constexpr double kSameRatio = 1.05;
constexpr double kSameShare = 0.01;

std::string seconds_text(double seconds) { return format_value(seconds, Unit::kSeconds); }
std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string optional_seconds(const std::optional<double>& seconds) {
  return seconds ? seconds_text(*seconds) : "-";
}

// "1.6 times", or nothing if the two are about the same.
std::string times(double larger, double smaller) {
  if (smaller <= 0 || larger / smaller < kSameRatio) return {};
  const double ratio = larger / smaller;
  return fmt::format("{:.{}f} times", ratio, ratio < 9.95 ? 1 : 0);
}

// Of the second against the first: "1.6 times sooner". The words are for smaller and larger.
std::string compared_text(double first, double second, const char* smaller, const char* larger) {
  if (first <= 0 || second <= 0) return {};
  const std::string ratio = times(std::max(first, second), std::min(first, second));
  if (ratio.empty()) return "the same";
  return fmt::format("{} {}", ratio, second < first ? smaller : larger);
}

std::string share_difference(double first, double second) {
  const double points = 100 * (second - first);
  if (std::abs(points) < 100 * kSameShare) return "the same";
  return fmt::format("{:.0f} percentage points {}", std::abs(points), points < 0 ? "less" : "more");
}

std::string count_difference(uint64_t first, uint64_t second) {
  if (first == second) return "the same";
  return second < first ? fmt::format("{} fewer", first - second)
                        : fmt::format("{} more", second - first);
}

std::string preemptions_text(const StepUse& use) {
  if (use.preemptions_swap == 0) return std::to_string(use.preemptions_recompute);
  if (use.preemptions_recompute == 0) return fmt::format("{} (swapped)", use.preemptions_swap);
  return fmt::format("{} (recomputed) and {} (swapped)", use.preemptions_recompute,
                     use.preemptions_swap);
}

double p99(std::vector<double>& values) {
  const auto at = static_cast<size_t>(0.99 * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

uint64_t preemptions(const StepUse& use) {
  return use.preemptions_recompute + use.preemptions_swap;
}

std::string how_often(uint64_t count) {
  if (count == 0) return "never";
  return count == 1 ? "once" : fmt::format("{} times", count);
}

}  // namespace

double ComparedNumbers::tokens_per_s() const {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double ComparedNumbers::batch() const {
  return use.busy_seconds > 0 ? use.member_seconds / use.busy_seconds : 0;
}

ComparedNumbers numbers_at(const ComparedRun& run, const StepUse& use, double now) {
  ComparedNumbers numbers{.label = run.label,
                          .seconds = std::min(now, run.end_seconds()),
                          .requests = run.requests.size(),
                          .delivers_tokens = run.policy.delivery == Delivery::kAtOnce,
                          .use = use,
                          .max_sequences = run.limits.max_sequences};
  double first_tokens = 0, ends = 0;
  size_t answered = 0;
  std::vector<double> gaps;
  for (const RequestTiming& timing : run.requests) {
    const std::vector<double>& tokens = timing.token_times;
    const auto delivered = std::ranges::upper_bound(tokens, now) - tokens.begin();
    numbers.tokens += static_cast<uint64_t>(delivered);
    const bool ended = tokens.empty() || tokens.back() <= now;
    if (ended && timing.arrival <= now) ++numbers.finished;
    if (delivered == 0) continue;
    ++answered;
    first_tokens += timing.time_to_first_token();
    if (ended) ends += timing.end_to_end();
    for (ptrdiff_t i = 1; i < delivered; ++i)
      gaps.push_back(tokens[static_cast<size_t>(i)] - tokens[static_cast<size_t>(i) - 1]);
  }
  numbers.done = numbers.finished == numbers.requests;
  if (answered > 0) numbers.ttft_mean = first_tokens / static_cast<double>(answered);
  if (numbers.finished > 0) numbers.end_to_end_mean = ends / static_cast<double>(numbers.finished);
  if (!gaps.empty() && numbers.delivers_tokens) numbers.tbt_p99 = p99(gaps);
  return numbers;
}

std::vector<ComparedLine> compared_lines(const NumbersPair& numbers) {
  const ComparedNumbers &a = numbers[0], &b = numbers[1];
  const bool done = a.done && b.done;
  std::vector<ComparedLine> lines;
  const auto line = [&](const char* name, std::string first, std::string second,
                        std::string difference) {
    lines.push_back({.name = name,
                     .values = {std::move(first), std::move(second)},
                     .difference = std::move(difference)});
  };
  const auto both = [&](const std::optional<double>& first, const std::optional<double>& second,
                        const char* smaller, const char* larger) {
    return first && second ? compared_text(*first, *second, smaller, larger) : std::string();
  };
  line("requests finished", fmt::format("{} of {}", a.finished, a.requests),
       fmt::format("{} of {}", b.finished, b.requests),
       done ? "" : count_difference(a.finished, b.finished));
  line(done ? "time until all had finished" : "time so far", seconds_text(a.seconds),
       seconds_text(b.seconds), done ? compared_text(a.seconds, b.seconds, "sooner", "later") : "");
  line("generated tokens/s", fmt::format("{:.0f}", a.tokens_per_s()),
       fmt::format("{:.0f}", b.tokens_per_s()),
       compared_text(a.tokens_per_s(), b.tokens_per_s(), "fewer", "more"));
  line("time to first token, mean", optional_seconds(a.ttft_mean), optional_seconds(b.ttft_mean),
       both(a.ttft_mean, b.ttft_mean, "sooner", "later"));
  const auto tbt = [](const ComparedNumbers& side) {
    return side.delivers_tokens ? optional_seconds(side.tbt_p99) : "all tokens at once";
  };
  line("time between tokens, p99", tbt(a), tbt(b), both(a.tbt_p99, b.tbt_p99, "shorter", "longer"));
  line("end to end, mean", optional_seconds(a.end_to_end_mean), optional_seconds(b.end_to_end_mean),
       both(a.end_to_end_mean, b.end_to_end_mean, "sooner", "later"));
  line("padding, of computed tokens", percent(a.use.padding_share()),
       percent(b.use.padding_share()),
       share_difference(a.use.padding_share(), b.use.padding_share()));
  line("sequences per step, mean", fmt::format("{:.1f} of {}", a.batch(), a.max_sequences),
       fmt::format("{:.1f} of {}", b.batch(), b.max_sequences),
       compared_text(a.batch(), b.batch(), "fewer", "more"));
  line("GPU busy", percent(a.use.busy_share(0)), percent(b.use.busy_share(0)),
       share_difference(a.use.busy_share(0), b.use.busy_share(0)));
  line("KV slots without a token", percent(a.use.kv_waste_share()), percent(b.use.kv_waste_share()),
       share_difference(a.use.kv_waste_share(), b.use.kv_waste_share()));
  line("preemptions", preemptions_text(a.use), preemptions_text(b.use),
       count_difference(preemptions(a.use), preemptions(b.use)));
  line("steps", std::to_string(a.use.steps), std::to_string(b.use.steps),
       compared_text(static_cast<double>(a.use.steps), static_cast<double>(b.use.steps), "fewer",
                     "more"));
  return lines;
}

std::vector<std::string> difference_in_words(const NumbersPair& numbers) {
  const ComparedNumbers &a = numbers[0], &b = numbers[1];
  if (!a.done || !b.done) return {};
  std::vector<std::string> words;
  const bool second_sooner = b.seconds < a.seconds;
  const ComparedNumbers &sooner = second_sooner ? b : a, &later = second_sooner ? a : b;
  if (const std::string ratio = times(later.seconds, sooner.seconds); !ratio.empty())
    words.push_back(fmt::format("{} finished {} sooner: after {}, not {}.", sooner.label, ratio,
                                seconds_text(sooner.seconds), seconds_text(later.seconds)));
  else
    words.push_back(fmt::format("Both finished after {}.", seconds_text(a.seconds)));

  const double first_padding = a.use.padding_share(), second_padding = b.use.padding_share();
  if (std::abs(first_padding - second_padding) >= kSameShare) {
    const bool first_pads = first_padding > second_padding;
    const ComparedNumbers &pads = first_pads ? a : b, &other = first_pads ? b : a;
    const double less = std::min(first_padding, second_padding);
    words.push_back(fmt::format("{} computed {} padding, {} {}.", pads.label,
                                percent(std::max(first_padding, second_padding)), other.label,
                                less < kSameShare ? "none" : percent(less)));
  }
  if (a.ttft_mean && b.ttft_mean) {
    const bool second = *b.ttft_mean < *a.ttft_mean;
    const double less = std::min(*a.ttft_mean, *b.ttft_mean);
    const double more = std::max(*a.ttft_mean, *b.ttft_mean);
    if (const std::string ratio = times(more, less); !ratio.empty())
      words.push_back(fmt::format("First tokens came {} sooner with {}: after {}, not {}.", ratio,
                                  second ? b.label : a.label, seconds_text(less),
                                  seconds_text(more)));
  }
  const double first_waste = a.use.kv_waste_share(), second_waste = b.use.kv_waste_share();
  if (std::abs(first_waste - second_waste) >= 5 * kSameShare) {
    const ComparedNumbers& wastes = first_waste > second_waste ? a : b;
    words.push_back(fmt::format("{} left {} of its KV slots empty, not {}.", wastes.label,
                                percent(std::max(first_waste, second_waste)),
                                percent(std::min(first_waste, second_waste))));
  }
  const uint64_t first_preempted = preemptions(a.use), second_preempted = preemptions(b.use);
  if (first_preempted != second_preempted) {
    const bool first_more = first_preempted > second_preempted;
    const ComparedNumbers &more = first_more ? a : b, &less = first_more ? b : a;
    words.push_back(fmt::format("{} preempted requests {}, {} {}.", more.label,
                                how_often(std::max(first_preempted, second_preempted)), less.label,
                                how_often(std::min(first_preempted, second_preempted))));
  }
  return words;
}

}  // namespace hearth
