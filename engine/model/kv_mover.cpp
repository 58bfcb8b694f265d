#include "engine/model/kv_mover.h"

#include <cstring>

#include "engine/ops/kv_move.h"
#include "params/kv_move.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {

Result<KvMover> KvMover::create(Device& device, const KvCache& kv, uint32_t kv_heads) {
  KvMover mover;
  mover.kv_heads_ = kv_heads;
  for (size_t i = 0; i < kv.allocations().size(); ++i) {
    const Buffer& allocation = kv.allocations()[i];
    std::vector<params::KvPlane> planes;
    for (const KvCache::Plane& plane : kv.planes())
      if (plane.allocation == i)
        planes.push_back({.rows = allocation.address() + plane.offset,
                          .row_bytes = plane.block_bytes / (kv_heads * params::kBlockTokens)});
    if (planes.empty()) continue;
    HEARTH_ASSIGN(Buffer list,
                  device.memory().allocate({.bytes = planes.size() * sizeof(params::KvPlane),
                                            .intent = MemoryIntent::kUpload,
                                            .name = "KV planes"}));
    std::memcpy(list.mapped(), planes.data(), planes.size() * sizeof(params::KvPlane));
    HEARTH_TRY(list.flush());
    mover.planes_.push_back({.allocation = &allocation,
                             .list = std::move(list),
                             .count = static_cast<uint32_t>(planes.size())});
  }
  return mover;
}

Status KvMover::record(CommandRecorder& recorder, PipelineStore& pipelines, const DeviceCaps& caps,
                       const BufferSlice& lists, uint32_t count, const BufferSlice& words) const {
  for (const Planes& planes : planes_) {
    const KvMoveShape shape{.lists = count, .planes = planes.count, .kv_heads = kv_heads_};
    HEARTH_TRY(record_kv_move(recorder, pipelines, choose_kv_move(caps, shape),
                              {.cache = planes.allocation->all(),
                               .planes = planes.list.all(),
                               .lists = lists,
                               .words = words,
                               .shape = shape}));
  }
  return {};
}

}  // namespace hearth
