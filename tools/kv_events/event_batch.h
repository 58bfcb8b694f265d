// A batch of events in vLLM's msgpack format: [seconds, [events], rank]. Pure.
//
// Both encodings of an event are in use. vLLM has written maps since June 2026; SGLang, and vLLM
// and indexers before that, know arrays:
//   maps    {"type": "BlockStored", "block_hashes": [..], "parent_block_hash": .., "token_ids":
//   [..],
//            "block_size": 16, "medium": "GPU", ..}
//   arrays  ["BlockStored", [hashes], parent, [token ids], 16, null, "GPU"]
// Hashes are 64 bits. A chain of stored blocks is one event, and so are removed blocks in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/kv_events/block_log.h"

namespace hearth {

enum class EventEncoding { kArrays, kMaps };

// "arrays" or "maps".
std::optional<EventEncoding> event_encoding(std::string_view name);

// `seconds` since 1970.
std::vector<uint8_t> encode_batch(std::span<const BlockEvent> events, EventEncoding encoding,
                                  double seconds);

}  // namespace hearth
