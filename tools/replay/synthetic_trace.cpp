#include "tools/replay/synthetic_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "tools/replay/parse_number.h"
#include "tools/replay/seeded_random.h"

namespace hearth {
namespace {

constexpr uint32_t kMostTokens = 16'000'000;
constexpr uint32_t kMostRequests = 10'000'000;

struct Range {
  uint32_t low = 0, high = 0;
  uint32_t median = 0;  // 0: all are equally likely

  uint32_t draw(SeededRandom& random) const;
};

uint32_t Range::draw(SeededRandom& random) const {
  if (median == 0) return random.between(low, high);
  // The upper end is two standard deviations away, or the lower end if the median is the upper one.
  const double end = high > median ? high : low;
  const double deviation = std::abs(std::log(end / median)) / 2;
  for (;;) {
    const double tokens = std::round(median * std::exp(deviation * random.normal()));
    if (tokens >= low && tokens <= high) return static_cast<uint32_t>(tokens);
  }
}

struct SyntheticOptions {
  double rate = std::numeric_limits<double>::infinity();
  uint32_t requests = 64;
  Range prompt{128, 128}, generated{64, 64};
  uint32_t prefix = 0;
  uint64_t seed = 1;
};

Error wrong(std::string_view key, std::string_view value, std::string_view expected) {
  return {ErrorKind::kInvalid,
          fmt::format("synthetic trace: {}={} is not {}", key, value, expected)};
}

Result<Range> parse_range(std::string_view key, std::string_view value) {
  const size_t tilde = value.find('~');
  const std::string_view ends = value.substr(0, tilde);
  const size_t dots = ends.find("..");
  const std::string_view high_text = dots == std::string_view::npos ? ends : ends.substr(dots + 2);
  const auto low = parse_number<uint32_t>(ends.substr(0, dots));
  const auto high = parse_number<uint32_t>(high_text);
  if (!low || !high || *low < 1 || *high < *low || *high > kMostTokens)
    return wrong(key, value, "a number of tokens, at least 1, or a range such as 16..120");
  if (tilde == std::string_view::npos) return Range{*low, *high};
  const auto median = parse_number<uint32_t>(value.substr(tilde + 1));
  if (!median || *median < *low || *median > *high)
    return wrong(key, value, "a range with a median in it, such as 16..3000~540");
  return Range{*low, *high, *median};
}

Status set_option(SyntheticOptions& options, std::string_view key, std::string_view value) {
  if (key == "rate") {
    const auto rate = parse_number<double>(value);
    if (!rate || !(*rate > 0)) return wrong(key, value, "a number above 0, or inf");
    options.rate = *rate;
  } else if (key == "n") {
    const auto requests = parse_number<uint32_t>(value);
    if (!requests || *requests < 1 || *requests > kMostRequests)
      return wrong(key, value, fmt::format("a number of requests from 1 to {}", kMostRequests));
    options.requests = *requests;
  } else if (key == "prompt") {
    HEARTH_ASSIGN(options.prompt, parse_range(key, value));
  } else if (key == "gen") {
    HEARTH_ASSIGN(options.generated, parse_range(key, value));
  } else if (key == "prefix") {
    const auto prefix = parse_number<uint32_t>(value);
    if (!prefix || *prefix > kMostTokens) return wrong(key, value, "a number of tokens");
    options.prefix = *prefix;
  } else if (key == "seed") {
    const auto seed = parse_number<uint64_t>(value);
    if (!seed) return wrong(key, value, "a number");
    options.seed = *seed;
  } else {
    return Error{ErrorKind::kInvalid,
                 fmt::format("synthetic trace: there is no '{}', only rate, n, prompt, gen, prefix "
                             "and seed",
                             key)};
  }
  return {};
}

Result<SyntheticOptions> parse_options(std::string_view text) {
  SyntheticOptions options;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      return Error{ErrorKind::kInvalid,
                   fmt::format("synthetic trace: '{}' is not of the form name=value", entry)};
    HEARTH_TRY(set_option(options, entry.substr(0, equals), entry.substr(equals + 1)));
  }
  return options;
}

}  // namespace

Result<Trace> make_synthetic_trace(std::string_view text, size_t limit) {
  if (text.starts_with(kSyntheticScheme)) text.remove_prefix(kSyntheticScheme.size());
  HEARTH_ASSIGN(const SyntheticOptions options, parse_options(text));
  SeededRandom random(options.seed);
  const size_t count = limit == 0 ? options.requests : std::min<size_t>(limit, options.requests);
  Trace trace;
  double time = 0;
  for (size_t i = 0; i < count; ++i) {
    TraceRequest request;
    request.prompt_tokens = options.prefix + options.prompt.draw(random);
    request.generated_tokens = options.generated.draw(random);
    if (options.prefix > 0) {
      request.prefix_ids = {0};
      request.tokens_per_prefix_id = options.prefix;
    }
    // Drawn whatever the rate is, so that the lengths do not depend on it.
    const double gap = random.exponential(1.0);
    if (i > 0) time += gap / options.rate;
    if (time > kLatestArrivalSeconds)
      return Error{ErrorKind::kInvalid,
                   fmt::format("synthetic trace: at rate={:g}, request {} would arrive after more "
                               "than {:g} seconds",
                               options.rate, i + 1, kLatestArrivalSeconds)};
    request.arrival_seconds = time;
    trace.requests.push_back(std::move(request));
  }
  return trace;
}

}  // namespace hearth
