#include "engine/model/block_mover.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>

#include "engine/ops/block_copy.h"
#include "params/block_copy.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {

Result<std::unique_ptr<BlockMover>> BlockMover::create(Device& device, PipelineStore& pipelines,
                                                       const KvCache& from, const KvCache& to) {
  assert(from.planes().size() == to.planes().size());
  std::unique_ptr<BlockMover> mover(new BlockMover(device));
  HEARTH_ASSIGN(mover->pairs_, device.memory().allocate({.bytes = kPairs * sizeof(params::CopyPair),
                                                         .intent = MemoryIntent::kUpload,
                                                         .name = "block pairs"}));

  // One dispatch copies between two allocations.
  std::map<std::pair<size_t, size_t>, std::vector<params::CopyPlane>> meetings;
  for (size_t i = 0; i < from.planes().size(); ++i) {
    const KvCache::Plane &source = from.planes()[i], &target = to.planes()[i];
    meetings[{source.allocation, target.allocation}].push_back(
        {.from = from.allocations()[source.allocation].address() + source.offset,
         .to = to.allocations()[target.allocation].address() + target.offset,
         .block_bytes = source.block_bytes});
  }

  for (const KvCache::Plane& plane : from.planes()) mover->block_bytes_ += plane.block_bytes;
  if (device.caps().limits.timestamp_ns != 0) {
    HEARTH_ASSIGN(mover->timer_, GpuTimer::create(device, 1));
  }

  HEARTH_ASSIGN(CommandRecorder recorder,
                CommandRecorder::begin(device, {.name = "block copies",
                                                .timer = mover->timer_.get(),
                                                .timing = Timing::kWhole}));
  mover->planes_.reserve(meetings.size());
  for (const auto& [allocations, planes] : meetings) {
    HEARTH_ASSIGN(Buffer list,
                  device.memory().allocate({.bytes = planes.size() * sizeof(params::CopyPlane),
                                            .intent = MemoryIntent::kUpload,
                                            .name = "block planes"}));
    std::memcpy(list.mapped(), planes.data(), planes.size() * sizeof(params::CopyPlane));
    HEARTH_TRY(list.flush());
    mover->planes_.push_back(std::move(list));
    BlockCopyShape shape{.pairs = kPairs, .planes = static_cast<uint32_t>(planes.size())};
    for (const params::CopyPlane& plane : planes)
      shape.block_bytes = std::max(shape.block_bytes, plane.block_bytes);
    HEARTH_TRY(record_block_copy(recorder, pipelines, choose_block_copy(device.caps(), shape),
                                 {.from = from.allocations()[allocations.first].all(),
                                  .to = to.allocations()[allocations.second].all(),
                                  .planes = mover->planes_.back().all(),
                                  .pairs = mover->pairs_.all(),
                                  .shape = shape}));
  }
  HEARTH_ASSIGN(mover->commands_, recorder.finish());
  return mover;
}

Status BlockMover::move(std::span<const BlockMove> pairs) {
  Queue& queue = device_.compute();
  while (!pairs.empty()) {
    // Nearly always over by now. A step waits here only for its own copies, if there are more than
    // kPairs of them or if some depend on others.
    HEARTH_TRY(finish_last());
    const size_t count = std::min(pairs.size(), kPairs);
    const std::span<params::CopyPair> list = pairs_.view<params::CopyPair>();
    for (size_t i = 0; i < kPairs; ++i)
      list[i] = i < count ? params::CopyPair{.from = pairs[i].from, .to = pairs[i].to}
                          : params::CopyPair{.from = params::kNoBlock};
    HEARTH_TRY(pairs_.flush());
    HEARTH_ASSIGN(last_, queue.submit(commands_));
    traffic_.bytes += count * block_bytes_;
    pairs = pairs.subspan(count);
  }
  return {};
}

Status BlockMover::finish_last() {
  if (last_.timeline == nullptr) return {};
  HEARTH_TRY(device_.compute().wait(last_));
  last_ = {};
  if (timer_ == nullptr) return {};
  HEARTH_ASSIGN(const std::vector<GpuSpan> spans, timer_->read());
  for (const GpuSpan& span : spans) traffic_.seconds += span.seconds;
  return {};
}

Result<BlockTraffic> BlockMover::traffic() {
  HEARTH_TRY(finish_last());
  return traffic_;
}

}  // namespace hearth
