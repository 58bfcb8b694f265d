// Rope frequencies, computed once on the host. Every way of extending a model's context (linear,
// llama-3, YaRN, long-rope) is a table of frequencies and a factor on cosine and sine, so the
// kernel does not need to know them. Pure functions.
//
// A frequency is stored as the fraction of a full turn per position, in units of 2^-64. Multiplying
// it by a position in wrapping integers gives the angle modulo a full turn exactly, at any
// position; with a float frequency it would be off by 1e-2 radians at position 10^5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/result.h"

namespace hearth {

enum class RopeScaling {
  kNone,
  kLinear,    // all frequencies divided by `factor`
  kFactors,   // frequency i divided by factors[i], as with GGUF's rope_freqs tensor
  kLlama3,    // low frequencies divided by `factor`, high ones kept, a ramp between
  kYarn,      // the same idea, with the ramp over the index of the pair
  kLongRope,  // frequency i divided by factors[i], or by long_factors[i] for a long context
};

struct RopeTableInfo {
  uint32_t dims = 0;  // rotated elements of a head; even
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // linear, llama-3, YaRN
  uint32_t original_context = 0;  // llama-3, YaRN, long-rope: the context before extension
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama-3
  double ext_factor = 1.0;                               // YaRN: share of the ramp; 0: linear
  double beta_fast = 32.0, beta_slow = 1.0;              // YaRN: turns within original_context
  bool truncate = true;                                  // YaRN: the ramp ends at whole pairs
  // Factor on cosine and sine. 0 means the method's own: 0.1 ln(factor) + 1 for YaRN, sqrt(1 +
  // ln(model_context / original_context) / ln(original_context)) for long-rope, 1 for the rest. A
  // GGUF file's attn_factor multiplies that value; config.json's attention_factor replaces it.
  double attention_factor = 0.0;
  std::span<const float> factors, long_factors;  // [dims / 2]
  uint32_t model_context = 0;                    // long-rope: most tokens the model supports
  uint32_t context = 0;  // long-rope: most tokens it will run with, which selects the list
};

struct RopeTable {
  std::vector<uint64_t> turns;   // [dims / 2] per position, in units of 2^-64 turn
  float attention_scale = 1.0f;  // on cosine and sine
};

// The table in the kernel's layout (params/rope_kv.h), ready to be uploaded.
std::vector<uint32_t> rope_table_words(const RopeTable& table);

// Fails if the parameters are invalid, as a damaged model file may have them.
Result<RopeTable> make_rope_table(const RopeTableInfo& info);

// The frequencies of the table, in radians per position. REQUIRES: make_rope_table succeeds.
std::vector<double> rope_frequencies(const RopeTableInfo& info);

}  // namespace hearth
