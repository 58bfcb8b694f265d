#include "tools/kv_events/event_batch.h"

#include <nlohmann/json.hpp>

namespace hearth {
namespace {

using nlohmann::ordered_json;
using Kind = BlockEvent::Kind;

constexpr const char* kMedium = "GPU";  // where the blocks are, by vLLM's name

ordered_json stored_event(std::span<const BlockEvent> chain, EventEncoding encoding) {
  ordered_json hashes = ordered_json::array(), tokens = ordered_json::array();
  for (const BlockEvent& event : chain) {
    hashes.push_back(event.hash);
    for (const TokenId token : event.tokens) tokens.push_back(token);
  }
  const BlockEvent& first = chain.front();
  ordered_json parent = first.first ? ordered_json() : ordered_json(first.parent);
  if (encoding == EventEncoding::kArrays)
    return ordered_json::array({"BlockStored", std::move(hashes), std::move(parent),
                                std::move(tokens), kTokensPerBlock, nullptr, kMedium});
  return {{"type", "BlockStored"},
          {"block_hashes", std::move(hashes)},
          {"parent_block_hash", std::move(parent)},
          {"token_ids", std::move(tokens)},
          {"block_size", kTokensPerBlock},
          {"lora_id", nullptr},
          {"medium", kMedium},
          {"lora_name", nullptr}};
}

ordered_json removed_event(std::span<const BlockEvent> removed, EventEncoding encoding) {
  ordered_json hashes = ordered_json::array();
  for (const BlockEvent& event : removed) hashes.push_back(event.hash);
  if (encoding == EventEncoding::kArrays)
    return ordered_json::array({"BlockRemoved", std::move(hashes), kMedium});
  return {{"type", "BlockRemoved"}, {"block_hashes", std::move(hashes)}, {"medium", kMedium}};
}

ordered_json cleared_event(EventEncoding encoding) {
  if (encoding == EventEncoding::kArrays) return ordered_json::array({"AllBlocksCleared"});
  return {{"type", "AllBlocksCleared"}};
}

// How many of the leading events are one event of the format.
size_t joined(std::span<const BlockEvent> events) {
  const auto joins = [&](size_t i) {
    if (events[i].kind != events.front().kind || events[i].kind == Kind::kCleared) return false;
    return events[i].kind == Kind::kRemoved ||
           (!events[i].first && events[i].parent == events[i - 1].hash);
  };
  size_t count = 1;
  while (count < events.size() && joins(count)) ++count;
  return count;
}

}  // namespace

std::optional<EventEncoding> event_encoding(std::string_view name) {
  if (name == "arrays") return EventEncoding::kArrays;
  if (name == "maps") return EventEncoding::kMaps;
  return std::nullopt;
}

std::vector<uint8_t> encode_batch(std::span<const BlockEvent> events, EventEncoding encoding,
                                  double seconds) {
  ordered_json list = ordered_json::array();
  while (!events.empty()) {
    const std::span<const BlockEvent> one = events.first(joined(events));
    events = events.subspan(one.size());
    switch (one.front().kind) {
      case Kind::kStored:
        list.push_back(stored_event(one, encoding));
        break;
      case Kind::kRemoved:
        list.push_back(removed_event(one, encoding));
        break;
      case Kind::kCleared:
        list.push_back(cleared_event(encoding));
        break;
    }
  }
  return ordered_json::to_msgpack(ordered_json::array({seconds, std::move(list), 0}));
}

}  // namespace hearth
