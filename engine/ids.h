// The numbers by which the layers of the engine name things.
#pragma once

#include <cstdint>

namespace hearth {

using RequestId = std::uint64_t;  // never reused by an engine; 0: none
using TokenId = std::uint32_t;    // in the model's vocabulary
using BlockId = std::uint32_t;    // a block of the KV cache

}  // namespace hearth
