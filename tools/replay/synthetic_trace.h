// Makes up traces from a description:
//   synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=192,seed=1
//
// rate    requests per second, as a Poisson process; inf: all at once (default)
// n       number of requests (64)
// prompt  tokens per prompt (128): a number, a range to choose from evenly, or a range with a
//         median, 16..3000~540, to choose from as real prompts are spread: log-normally around the
//         median, with about 1 in 40 beyond the range's upper end, which are drawn again
// gen     tokens to generate, likewise (64)
// prefix  tokens in front of every prompt that are the same in all of them (0)
// seed    the same seed gives the same trace (1)
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/result.h"
#include "tools/replay/trace.h"

namespace hearth {

inline constexpr std::string_view kSyntheticScheme = "synthetic:";

// `text` may start with "synthetic:". Makes only the first `limit` requests; 0 makes all.
Result<Trace> make_synthetic_trace(std::string_view text, size_t limit = 0);

}  // namespace hearth
