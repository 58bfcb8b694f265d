#include "tools/commands/rank_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/rank_group.h"
#include "engine/rank_worker.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/device_select.h"
#include "runtime/host/printable.h"
#include "runtime/instance.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

// What each rank has of the model.
Result<std::vector<ModelShare>> model_shares(const ModelFile& file, const RankOptions& ranks,
                                             const SplitRequest& request) {
  std::vector<ModelShare> shares(ranks.count());
  if (ranks.split == RankSplit::kTensor) {
    HEARTH_TRY(check_shards(file, ranks.count()));
    const auto layers = static_cast<uint32_t>(request.layer_bytes.size());
    for (uint32_t rank = 0; rank < ranks.count(); ++rank)
      shares[rank] = {.held = {.first = 0, .last = layers},
                      .shard = {.index = rank, .count = ranks.count()}};
    return shares;
  }
  HEARTH_ASSIGN(const std::vector<LayerRange> ranges, split_layers(request));
  for (size_t rank = 0; rank < shares.size(); ++rank) shares[rank].held = ranges[rank];
  return shares;
}

}  // namespace

Result<std::vector<RankFacts>> rank_facts(const ModelFile& file, const SessionOptions& options) {
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(SplitRequest request, split_request(file));
  request.layers = options.ranks.layers;
  std::vector<const DeviceCaps*> devices;
  for (uint32_t rank = 0; rank < options.ranks.count(); ++rank) {
    HEARTH_ASSIGN(const size_t chosen,
                  select_device(instance->devices(), options.ranks.device(rank, options.device)));
    const DeviceCaps& caps = instance->devices()[chosen];
    devices.push_back(&caps);
    request.room_bytes.push_back(bytes_to_plan_with(caps, caps.free_bytes(), options) /
                                 options.ranks.sharing(rank));
  }
  if (std::ranges::all_of(devices, [](const DeviceCaps* caps) { return is_cpu(*caps); }))
    balance_time(request);
  HEARTH_ASSIGN(const std::vector<ModelShare> shares, model_shares(file, options.ranks, request));
  std::vector<RankFacts> ranks;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    const RankTask task{.held = shares[rank].held,
                        .shard = shares[rank].shard,
                        .context = options.context,
                        .kv_blocks = options.kv_blocks};
    RankFacts facts{.device = devices[rank]->name,
                    .free_bytes = request.room_bytes[rank],
                    .share = shares[rank],
                    .room = {}};
    HEARTH_ASSIGN(facts.room, rank_room(*devices[rank], facts.free_bytes, file, options, task));
    ranks.push_back(std::move(facts));
  }
  return ranks;
}

void print_ranks(const std::vector<RankFacts>& ranks) {
  bool fits = true;
  uint32_t max_context = UINT32_MAX, blocks = UINT32_MAX;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [device, free_bytes, share, room] = ranks[rank];
    fmt::print(
        "   rank {}:       {}, {} free: {}, {} of weights, {} of activations, {} of "
        "KV cache per token\n",
        rank, printable(device), format_bytes(free_bytes), share_text(share),
        format_bytes(room.weight_bytes), format_bytes(room.activation_bytes),
        format_bytes(room.kv_bytes_per_block / kTokensPerBlock));
    fits = fits && room.fits;
    max_context = std::min(max_context, room.max_context);
    blocks = std::min(blocks, room.kv_blocks);
  }
  fmt::print("   {} on {} ranks with a context of {} tokens, {} KV blocks\n",
             fits ? "fits" : "does not fit", ranks.size(), ranks.front().room.context, blocks);
  fmt::print("   longest context that fits: {} tokens\n", max_context);
}

nlohmann::json to_json(const std::vector<RankFacts>& ranks) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [device, free_bytes, share, room] : ranks)
    list.push_back({{"device", device},
                    {"free_bytes", free_bytes},
                    {"first_layer", share.held.first},
                    {"layers", share.held.last - share.held.first},
                    {"shares_of_layers", share.shard.count},
                    {"weight_bytes", room.weight_bytes},
                    {"activation_bytes", room.activation_bytes},
                    {"kv_bytes_per_token", room.kv_bytes_per_block / kTokensPerBlock},
                    {"kv_blocks", room.kv_blocks},
                    {"max_context", room.max_context},
                    {"fits", room.fits}});
  return list;
}

}  // namespace hearth
