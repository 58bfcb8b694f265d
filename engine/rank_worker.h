// A rank other than 0: opens its device, loads its layers and computes them until rank 0 says stop.
#pragma once

#include "engine/model/shared_rows.h"
#include "engine/ranks/link.h"
#include "engine/ranks/rank_setup.h"
#include "engine/session.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// Returns when rank 0 says stop, or with an error, which rank 0 hears of, too. `options` are those
// of rank 0's session; `rows` is read once rank 0 says load, and null in another process.
// REQUIRES: link.rank() > 0; all arguments outlive the call.
Status run_rank_worker(Instance& instance, Link& link, const ModelFile& file,
                       const SessionOptions& options, const SharedRowsList* rows = nullptr);

// What ranks must agree about before they compute together.
uint64_t rank_fingerprint(const ModelFile& file);
// The memory that one of the ranks on a device may plan with.
uint64_t rank_free_bytes(Device& device, const SessionOptions& options, uint32_t rank);
// What a rank has room for.
Result<RankRoom> rank_room(const DeviceCaps& caps, uint64_t free_bytes, const ModelFile& file,
                           const SessionOptions& options, const RankTask& task);

}  // namespace hearth
