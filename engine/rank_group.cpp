#include "engine/rank_group.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/divided_rows.h"
#include "engine/model/meeting_time.h"
#include "engine/rank_worker.h"
#include "engine/ranks/in_process_link.h"
#include "engine/ranks/link_timing.h"
#include "engine/ranks/rank_loop.h"
#include "engine/ranks/shard_loop.h"
#include "engine/session.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

// Rows that a part of a step must have to be worth reading the weights again. A CPU is limited by
// arithmetic from a few rows on, a GPU from a few hundred; what decodes on GPUs is measured
// instead.
constexpr uint32_t kLeastCpuPartRows = 2;
constexpr uint32_t kLeastGpuPartRows = 512;

// Of each size of messages that are timed when a session starts.
constexpr uint32_t kLinkRepetitions = 9;

}  // namespace

std::string share_text(const ModelShare& share) {
  if (share.shard.is_divided())
    return fmt::format("share {} of {} of every layer", share.shard.index + 1, share.shard.count);
  if (share.deal.is_divided())
    return fmt::format("share {} of {} of the KV cache", share.deal.rank + 1, share.deal.ranks);
  return fmt::format("layers {} to {}", share.held.first, share.held.last - 1);
}

Result<SplitRequest> split_request(const ModelFile& file) {
  HEARTH_ASSIGN(const ModelPlan whole, plan_model(file));
  const uint32_t layers = whole.config.layers;
  SplitRequest request;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    uint64_t bytes = 0;
    for (const WeightSpec& spec : whole.table.specs())
      if (spec.role >= kFirstLayerRole && spec.layer == layer)
        for (const SegmentPlan& segment : plan_segments(spec, file))
          bytes += segment.device_bytes();
    request.layer_bytes.push_back(bytes);
  }
  if (layers < 2) return request;
  HEARTH_ASSIGN(const ModelPlan first, plan_model(file, {.first = 0, .last = 1}));
  HEARTH_ASSIGN(const ModelPlan last, plan_model(file, {.first = layers - 1, .last = layers}));
  request.input_bytes = first.weight_bytes - request.layer_bytes.front();
  request.output_bytes = last.weight_bytes - request.layer_bytes.back();
  return request;
}

Status check_shards(const ModelFile& file, uint32_t ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    HEARTH_TRY(plan_model(file, {}, {.index = rank, .count = ranks}));
  return {};
}

template <class T>
Result<T> RankGroup::named(uint32_t rank, Result<T> result) const {
  if (result.ok()) return result;
  return Error{result.error().kind, fmt::format("rank {}: {}", rank, result.error().message)};
}

Result<Message> RankGroup::receive_setup(uint32_t rank) {
  return link_->receive(rank, Channel::kSetup);
}

Result<std::unique_ptr<RankGroup>> RankGroup::open(Instance& instance, const ModelFile& file,
                                                   const SessionOptions& options) {
  std::unique_ptr<RankGroup> group(new RankGroup(file, options));
  const RankOptions& ranks = options.ranks;
  if (ranks.link != nullptr) {
    if (!ranks.devices.empty() && ranks.devices.size() != ranks.link->ranks())
      return invalid(fmt::format("--devices names {} devices for {} ranks", ranks.devices.size(),
                                 ranks.link->ranks()));
    group->link_ = ranks.link.get();
    return group;
  }
  // Before any device is opened.
  if (ranks.split == RankSplit::kTensor) {
    HEARTH_TRY(check_shards(file, ranks.count()));
  } else if (ranks.split == RankSplit::kLayers) {
    HEARTH_ASSIGN(SplitRequest request, split_request(file));
    request.room_bytes.assign(ranks.count(), 1);
    request.layers = ranks.layers;
    HEARTH_TRY(split_layers(request));
  }
  group->own_links_ = make_in_process_links(ranks.count());
  group->link_ = group->own_links_.front().get();
  for (uint32_t rank = 1; rank < ranks.count(); ++rank)
    group->threads_.emplace_back(
        [&instance, &file, &options, &link = *group->own_links_[rank], rows = group->shared_rows_] {
          // Rank 0 hears of an error before the rank ends.
          static_cast<void>(run_rank_worker(instance, link, file, options, rows.get()).ok());
        });
  return group;
}

RankGroup::~RankGroup() {
  if (link_ == nullptr) return;
  if (executor_)
    executor_.reset();  // tells the ranks to stop
  else
    link_->fail("rank 0 could not start");
  for (std::thread& thread : threads_) thread.join();
}

Result<ModelShare> RankGroup::divide(const RankOffer& own) {
  offers_.assign(1, own);
  for (uint32_t rank = 1; rank < count(); ++rank) {
    HEARTH_ASSIGN(const Message message, receive_setup(rank));
    HEARTH_ASSIGN(RankOffer offer, named(rank, read_offer(message)));
    if (offer.fingerprint != own.fingerprint)
      return invalid(
          fmt::format("rank {} has another model file or another version of the program", rank));
    offers_.push_back(std::move(offer));
  }
  shares_.resize(count());
  if (options_.ranks.split == RankSplit::kTensor) {
    HEARTH_TRY(check_shards(file_, count()));
    for (uint32_t rank = 0; rank < count(); ++rank)
      shares_[rank].shard = {.index = rank, .count = count()};
    exchange_.emplace(*link_);
    return shares_.front();
  }
  if (options_.ranks.split == RankSplit::kSequence) {
    for (uint32_t rank = 0; rank < count(); ++rank)
      shares_[rank].deal = {.rank = rank, .ranks = count()};
    exchange_.emplace(*link_);
    return shares_.front();
  }
  HEARTH_ASSIGN(SplitRequest request, split_request(file_));
  for (const RankOffer& offer : offers_) request.room_bytes.push_back(offer.free_bytes);
  if (std::ranges::all_of(offers_, &RankOffer::is_cpu)) balance_time(request);
  request.layers = options_.ranks.layers;
  HEARTH_ASSIGN(const std::vector<LayerRange> ranges, split_layers(request));
  for (uint32_t rank = 0; rank < count(); ++rank) shares_[rank].held = ranges[rank];
  return shares_.front();
}

RankTask RankGroup::share_task(uint32_t rank) const {
  return {.held = shares_[rank].held, .shard = shares_[rank].shard, .deal = shares_[rank].deal};
}

Status RankGroup::plan(MemoryPlan& memory, uint32_t wanted_blocks) {
  for (uint32_t rank = 1; rank < count(); ++rank) {
    RankTask task = share_task(rank);
    task.context = memory.context;
    task.kv_blocks = wanted_blocks;
    HEARTH_TRY(link_->send(rank, Channel::kSetup, write_task(task)));
  }
  rooms_.assign(1, {.weight_bytes = memory.weight_bytes,
                    .activation_bytes = memory.activation_bytes,
                    .kv_bytes_per_block = memory.kv_bytes_per_block,
                    .context = memory.context,
                    .max_context = memory.max_context,
                    .kv_blocks = memory.kv_blocks,
                    .fits = memory.fits});
  for (uint32_t rank = 1; rank < count(); ++rank) {
    HEARTH_ASSIGN(const Message message, receive_setup(rank));
    HEARTH_ASSIGN(const RankRoom room, named(rank, read_room(message)));
    rooms_.push_back(room);
    memory.max_context = std::min(memory.max_context, room.max_context);
    memory.kv_blocks = std::min(memory.kv_blocks, room.kv_blocks);
    memory.fits = memory.fits && room.fits;
  }
  return {};
}

Result<uint32_t> RankGroup::divided_rows(Device& device, const ModelPlan& share,
                                         const StepLimits& limits) {
  if (options_.ranks.split != RankSplit::kTensor) return 0;
  if (options_.ranks.divided_rows) {
    divided_rows_text_ = hearth::divided_rows_text(*options_.ranks.divided_rows, "--divide-rows");
    return *options_.ranks.divided_rows;
  }
  // What is measured differs from run to run, and so would results, by rounding.
  if (limits.deterministic) {
    divided_rows_text_ = hearth::divided_rows_text(0, "--deterministic");
    return 0;
  }
  for (uint32_t rank = 1; rank < count(); ++rank)
    HEARTH_TRY(link_->send(rank, Channel::kSetup, write_task({.echoes = true})));
  MeetingCost cost;
  HEARTH_ASSIGN(cost.link, time_links(*link_, {64, 64 << 10, 1 << 20}, kLinkRepetitions));
  HEARTH_ASSIGN(const MeetingTime meeting, time_meeting(device));
  cost.submit_seconds = meeting.submit_seconds;
  cost.byte_seconds = meeting.byte_seconds;
  cost.host_byte_seconds = time_host_byte();
  const DividedRows choice = choose_divided_rows(device.caps(), share, limits, cost);
  divided_rows_text_ = hearth::divided_rows_text(choice, cost);
  return choice.from;
}

uint32_t RankGroup::swap_blocks(uint64_t bytes, uint64_t own_most) const {
  uint64_t block_bytes = 0, staged = 0, most = own_most;
  for (size_t rank = 0; rank < rooms_.size(); ++rank) {
    block_bytes += rooms_[rank].kv_bytes_per_block;
    staged += staged_blocks(shares_[rank].deal);
    if (rank > 0) most = std::min(most, rooms_[rank].most_swap_blocks);
  }
  const uint64_t blocks = bytes / block_bytes;
  return static_cast<uint32_t>(std::min(blocks - std::min(blocks, staged), most));
}

Status RankGroup::load(const StepRunnerOptions& options, const ModelConfig& config) {
  if (!own_links_.empty() && !exchange_) {
    const uint64_t bytes = StepBoundary::bytes(config, bucket_size(options.limits.rows));
    for (uint32_t rank = 0; rank + 1 < count(); ++rank)
      shared_rows_->push_back(SharedRows::allocate(bytes));
  }
  for (uint32_t rank = 1; rank < count(); ++rank) {
    RankTask task = share_task(rank);
    task.context = options.limits.context;
    task.kv_blocks = options.kv_blocks;
    task.swap_blocks = options.swap_blocks;
    task.divided_rows = options.limits.divided_rows;
    task.load = true;
    HEARTH_TRY(link_->send(rank, Channel::kSetup, write_task(task)));
  }
  return {};
}

// Ranks on one card, or on the threads that one process has for its CPU, cannot compute at the same
// time, so that dividing a step would only read the weights more often.
uint32_t RankGroup::suitable_parts() const {
  const bool one_process = !own_links_.empty();
  for (size_t i = 0; i < offers_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (offers_[i].device_uuid == offers_[j].device_uuid && (!offers_[i].is_cpu || one_process))
        return 1;
  return count();
}

Status RankGroup::start(StepRunner& runner) {
  for (uint32_t rank = 1; rank < count(); ++rank) {
    HEARTH_ASSIGN(const Message message, receive_setup(rank));
    if (const Status ready = read_ready(message); !ready.ok())
      return Error{ready.error().kind, fmt::format("rank {}: {}", rank, ready.error().message)};
  }
  RankExecutorOptions options{.slots = runner.options().slots};
  options.parts = options_.ranks.parts > 0 ? options_.ranks.parts : suitable_parts();
  const bool cpu = std::ranges::all_of(offers_, &RankOffer::is_cpu);
  options.least_part_rows = cpu ? kLeastCpuPartRows : kLeastGpuPartRows;
  options.measure_decoding = !cpu && options_.ranks.parts == 0;
  options.whole_steps = exchange_.has_value();
  if (options.whole_steps) options.parts = 1;
  for (const RankRoom& room : rooms_) options.block_bytes += room.kv_bytes_per_block;
  if (!offers_.front().is_cpu) {
    link_->watch_closely(Channel::kIds);
    link_->watch_closely(Channel::kSums);
  }
  executor_ = std::make_unique<RankExecutor>(*link_, options);
  threads_.emplace_back([this, &runner] {
    const Status ended = exchange_ ? ShardLoop(*link_, runner, *exchange_).run()
                                   : RankLoop(*link_, runner, runner.options().rows).run();
    if (ended.ok()) return;
    const std::lock_guard lock(loss_);
    lost_ = ended.error().message;
    if (tell_) tell_(lost_);
  });
  return {};
}

void RankGroup::on_loss(std::function<void(const std::string& reason)> tell) {
  const std::lock_guard lock(loss_);
  tell_ = std::move(tell);
  if (tell_ && !lost_.empty()) tell_(lost_);
}

std::vector<std::string> RankGroup::describe() const {
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < rooms_.size(); ++rank)
    lines.push_back(fmt::format("rank {}: {}, {}, {} of weights", rank, offers_[rank].device,
                                share_text(shares_[rank]),
                                format_bytes(rooms_[rank].weight_bytes)));
  return lines;
}

}  // namespace hearth
