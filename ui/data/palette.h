// Every colour of the dashboard, in its dark and its light form, as plain numbers. A colour means
// one thing: what sequences do, kinds of memory, percentiles and parts of a step each have their
// own, and the colours that tell sequences apart are none of these. Colour-blind people can tell
// the colours of a group apart. tests/ui/data/palette_test.cpp checks all of this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hearth {

// What a sequence does in a step, or what a block is used for.
enum class PhaseColor : uint8_t {
  kPrefill,
  kDecode,
  kWaiting,
  kPreempted,
  kSwapped,
  kPadding,
  kSharedPrefix,
  kFree,
  kCached,
  kCount,
};
const char* phase_name(PhaseColor phase);  // "prefill"

// As 0xRRGGBB, for each theme.
struct Shades {
  uint32_t dark = 0, light = 0;

  constexpr uint32_t of(bool is_dark) const { return is_dark ? dark : light; }
};

inline constexpr std::array<Shades, static_cast<size_t>(PhaseColor::kCount)> kPhaseShades = {{
    {0x4aa3e8, 0x0072b2},  // prefill
    {0x2fbf8f, 0x009e73},  // decode
    {0x667082, 0xaab2be},  // waiting
    {0xe8743b, 0xd55e00},  // preempted
    {0xd977b4, 0xb0437f},  // swapped
    {0x8a6d3b, 0x7d6648},  // padding
    {0xf0e442, 0xcfa000},  // prefix cache hit
    {0x2a303b, 0xe3e7ed},  // free
    {0x7d8fb3, 0x8296bd},  // cached
}};

// Weights, KV cache, activations.
inline constexpr std::array<Shades, 3> kMemoryShades = {{
    {0xb9a7e6, 0x6d55b5},
    {0x56c7c0, 0x16807a},
    {0xe3c08b, 0xc08a3a},
}};

// The 50th, 90th and 99th: one hue that becomes stronger.
inline constexpr std::array<Shades, 3> kPercentileShades = {{
    {0xd6ccff, 0xa78bfa},
    {0xa78bfa, 0x7c4dff},
    {0x7c4dff, 0x3b1d99},
}};

// Parts of a step's time: the GPU's and the host's.
inline constexpr Shades kGpuTime = {0xe6a23c, 0xb87700}, kPlanningTime = {0x9db0c9, 0x5b6b80};

inline constexpr std::array<Shades, 10> kSequenceShades = {{
    {0x6482dc, 0x55a0fa},
    {0xfaa0a0, 0xaf4655},
    {0x737328, 0x733782},
    {0x37dcfa, 0xafaf55},
    {0xaf4673, 0xdc91af},
    {0xebdc82, 0x827328},
    {0xaf7364, 0xeb8282},
    {0xaf91af, 0x8282be},
    {0x9155a0, 0x822855},
    {0x82af55, 0xa06482},
}};

// Everything that is not data. The server's page has the same.
struct Chrome {
  uint32_t window, panel, raised, border, text, faint, accent, accent_strong, on_accent, warning;
};
inline constexpr Chrome kDarkChrome = {0x14171c, 0x1b1f26, 0x262c36, 0x39424f, 0xe6e9ee,
                                       0x98a2b3, 0x2d5f8a, 0x5aa2dc, 0x0c1a26, 0xff8a80};
inline constexpr Chrome kLightChrome = {0xeef0f3, 0xfafbfc, 0xe3e7ed, 0xc0c7d2, 0x1b1f26,
                                        0x5f6979, 0xa9cfee, 0x1f6fb5, 0xffffff, 0xb3261e};

}  // namespace hearth
