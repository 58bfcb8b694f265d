#include "tools/commands/rank_facts.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/rank_group.h"
#include "engine/rank_worker.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/device.h"
#include "runtime/device_check.h"
#include "runtime/device_select.h"
#include "runtime/host/printable.h"
#include "runtime/instance.h"
#include "runtime/memory.h"
#include "runtime/pipeline_cache.h"
#include "tools/bench/model_bench.h"
#include "tools/bench/step_cost.h"

namespace hearth {
namespace {

// What each rank has of the model.
Result<std::vector<ModelShare>> model_shares(const ModelFile& file, const RankOptions& ranks,
                                             const SplitRequest& request) {
  std::vector<ModelShare> shares(ranks.count());
  const auto layers = static_cast<uint32_t>(request.layer_bytes.size());
  if (ranks.split == RankSplit::kTensor) {
    HEARTH_TRY(check_shards(file, ranks.count()));
    for (uint32_t rank = 0; rank < ranks.count(); ++rank)
      shares[rank] = {.held = {.first = 0, .last = layers},
                      .shard = {.index = rank, .count = ranks.count()}};
    return shares;
  }
  if (ranks.split == RankSplit::kSequence) {
    for (uint32_t rank = 0; rank < ranks.count(); ++rank)
      shares[rank] = {.held = {.first = 0, .last = layers},
                      .deal = {.rank = rank, .ranks = ranks.count()}};
    return shares;
  }
  HEARTH_ASSIGN(const std::vector<LayerRange> ranges, split_layers(request));
  for (size_t rank = 0; rank < shares.size(); ++rank) shares[rank].held = ranges[rank];
  return shares;
}

Result<Ceilings> measured_ceilings(Instance& instance, size_t device_position) {
  HEARTH_ASSIGN(const auto device, Device::create(instance, device_position));
  HEARTH_ASSIGN(const auto pipelines,
                PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
  HEARTH_TRY(check_device(*device, *pipelines));
  return KernelBench(*device, *pipelines).measure_ceilings();
}

}  // namespace

double RankStepTime::seconds() const {
  double sum = 0, longest = 0;
  for (const double rank : rank_seconds) {
    sum += rank;
    longest = std::max(longest, rank);
  }
  return (at_once ? longest : sum) + hand_overs * kHandOverSeconds;
}

Result<RankStepTime> rank_step_time(const ModelFile& file, KvFormat kv,
                                    const std::vector<RankFacts>& ranks, uint32_t sequences,
                                    uint32_t tokens) {
  RankStepTime time{.sequences = sequences,
                    .tokens = tokens,
                    .hand_overs = static_cast<uint32_t>(ranks.size()),
                    .at_once = false};
  const ModelShare& first = ranks.front().share;
  time.at_once = first.shard.is_divided() || first.deal.is_divided();
  // They meet after the embedding, twice per layer, and for the logits; or once per layer, to merge
  // their attention.
  if (first.shard.is_divided()) time.hand_overs = 2 + 2 * first.held.last;
  if (first.deal.is_divided()) time.hand_overs = first.held.last;
  for (const RankFacts& rank : ranks) {
    const auto& [held, shard, deal] = rank.share;
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(file, held, shard, deal));
    const Cost cost = whole_step_cost(plan, kv, bench_step(sequences, tokens / deal.ranks, 1));
    // Work that takes a share of 2 of a device's ceilings in one second takes it two seconds.
    time.rank_seconds.push_back(ceiling_share(cost, 1.0, rank.ceilings).share);
  }
  return time;
}

Result<std::vector<RankFacts>> rank_facts(const ModelFile& file, const SessionOptions& options) {
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  HEARTH_ASSIGN(SplitRequest request, split_request(file));
  request.layers = options.ranks.layers;
  std::vector<const DeviceCaps*> devices;
  std::map<size_t, Ceilings> ceilings;  // by position
  std::vector<size_t> positions;        // by rank
  for (uint32_t rank = 0; rank < options.ranks.count(); ++rank) {
    HEARTH_ASSIGN(const size_t chosen,
                  select_device(instance->devices(), options.ranks.device(rank, options.device)));
    const DeviceCaps& caps = instance->devices()[chosen];
    devices.push_back(&caps);
    positions.push_back(chosen);
    request.room_bytes.push_back(bytes_to_plan_with(caps, caps.free_bytes(), options) /
                                 options.ranks.sharing(rank));
  }
  if (std::ranges::all_of(devices, [](const DeviceCaps* caps) { return is_cpu(*caps); }))
    balance_time(request);
  HEARTH_ASSIGN(const std::vector<ModelShare> shares, model_shares(file, options.ranks, request));
  for (const size_t position : positions)
    if (!ceilings.contains(position)) {
      HEARTH_ASSIGN(ceilings[position], measured_ceilings(*instance, position));
    }
  std::vector<RankFacts> ranks;
  for (size_t rank = 0; rank < shares.size(); ++rank) {
    const RankTask task{.held = shares[rank].held,
                        .shard = shares[rank].shard,
                        .deal = shares[rank].deal,
                        .context = options.context,
                        .kv_blocks = options.kv_blocks};
    RankFacts facts{.device = devices[rank]->name,
                    .free_bytes = request.room_bytes[rank],
                    .share = shares[rank],
                    .room = {},
                    .ceilings = ceilings[positions[rank]]};
    HEARTH_ASSIGN(facts.room, rank_room(*devices[rank], facts.free_bytes, file, options, task));
    ranks.push_back(std::move(facts));
  }
  return ranks;
}

void print_ranks(const std::vector<RankFacts>& ranks, const std::vector<RankStepTime>& steps) {
  bool fits = true;
  uint32_t max_context = UINT32_MAX, blocks = UINT32_MAX;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& [device, free_bytes, share, room, ceilings] = ranks[rank];
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
  if (steps.empty()) return;
  fmt::print(
      "   a decode step at the rates measured on these devices, with {:.2f} ms for each time that "
      "ranks {}; real steps take longer:\n",
      kHandOverSeconds * 1e3, steps.front().at_once ? "meet" : "hand over rows or ids");
  for (const RankStepTime& step : steps) {
    std::string each;
    for (const double seconds : step.rank_seconds)
      each += fmt::format("{}{:.2f}",
                          each.empty()   ? ""
                          : step.at_once ? " at the same time as "
                                         : " + ",
                          seconds * 1e3);
    fmt::print("   {:>4} {} of {} tokens: {} + {:.2f} = {:.2f} ms, {:.0f} tokens/s\n",
               step.sequences, step.sequences == 1 ? "sequence" : "sequences", step.tokens, each,
               kHandOverSeconds * step.hand_overs * 1e3, step.seconds() * 1e3,
               step.sequences / step.seconds());
  }
}

nlohmann::json to_json(const std::vector<RankFacts>& ranks) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [device, free_bytes, share, room, ceilings] : ranks)
    list.push_back({{"device", device},
                    {"free_bytes", free_bytes},
                    {"first_layer", share.held.first},
                    {"layers", share.held.last - share.held.first},
                    {"shares_of_layers", share.shard.count},
                    {"shares_of_kv_cache", share.deal.ranks},
                    {"weight_bytes", room.weight_bytes},
                    {"activation_bytes", room.activation_bytes},
                    {"kv_bytes_per_token", room.kv_bytes_per_block / kTokensPerBlock},
                    {"kv_blocks", room.kv_blocks},
                    {"max_context", room.max_context},
                    {"fits", room.fits},
                    {"read_bytes_per_s", ceilings.read_bytes_per_s},
                    {"flops_per_s", std::max(ceilings.flops_per_s, ceilings.matrix_flops_per_s)}});
  return list;
}

nlohmann::json to_json(const std::vector<RankStepTime>& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (const RankStepTime& step : steps)
    list.push_back({{"sequences", step.sequences},
                    {"tokens", step.tokens},
                    {"rank_seconds", step.rank_seconds},
                    {"hand_over_seconds", kHandOverSeconds * step.hand_overs},
                    {"seconds", step.seconds()}});
  return list;
}

}  // namespace hearth
