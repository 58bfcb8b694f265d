// Traces that are made up:
//   synthetic:rate=4,n=100,prompt=16..120,gen=8..96,prefix=192,seed=1
//
// rate    requests a second, at random and independently of each other; inf: all at once (default)
// n       how many (64)
// prompt  tokens of a prompt, one number or an even choice from a range (128)
// gen     tokens to generate, the same (64)
// prefix  tokens that come before every prompt and are the same in all of them (0)
// seed    the same seed gives the same trace (1)
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/result.h"
#include "tools/replay/trace.h"

namespace hearth {

inline constexpr std::string_view kSyntheticScheme = "synthetic:";

// `text` with or without "synthetic:". The first `limit` requests, 0: all.
Result<Trace> make_synthetic_trace(std::string_view text, size_t limit = 0);

}  // namespace hearth
