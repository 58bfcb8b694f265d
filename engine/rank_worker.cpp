#include "engine/rank_worker.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/memory_plan.h"
#include "engine/model/kv_cache.h"
#include "engine/model/step_runner.h"
#include "engine/prepare_steps.h"
#include "engine/ranks/link_timing.h"
#include "engine/ranks/rank_loop.h"
#include "engine/ranks/shard_loop.h"
#include "runtime/device.h"
#include "runtime/device_check.h"
#include "runtime/memory.h"
#include "runtime/pipeline_cache.h"

namespace hearth {
namespace {

// Everything of a rank, destroyed in the right order.
struct RankDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;
  std::unique_ptr<Model> model;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<StepPreparation> preparation;
};

Status open_rank_device(RankDevice& own, Instance& instance, const SessionOptions& options,
                        uint32_t rank) {
  HEARTH_ASSIGN(own.device, Device::open(instance, options.ranks.device(rank, options.device)));
  HEARTH_ASSIGN(own.pipelines,
                PipelineStore::create(*own.device, {.cache_directory = default_cache_directory()}));
  return check_device(*own.device, *own.pipelines);
}

Status load_layers(RankDevice& own, const ModelFile& file, const SessionOptions& options,
                   const RankTask& task, const RankRows& rows, RankExchange& exchange) {
  const ModelOptions model_options{
      .context = task.context, .held = task.held, .shard = task.shard, .deal = task.deal};
  HEARTH_ASSIGN(own.model, Model::allocate(*own.device, file, model_options));
  StepLimits limits = step_limits(options, own.device->caps(), own.model->config().context);
  limits.context = task.context;
  limits.divided_rows = task.divided_rows;
  HEARTH_ASSIGN(own.runner, StepRunner::create(*own.device, *own.pipelines, *own.model,
                                               {.limits = limits,
                                                .slots = options.max_sequences,
                                                .kv_blocks = task.kv_blocks,
                                                .swap_blocks = task.swap_blocks,
                                                .rows = rows,
                                                .waits_promptly = true,
                                                .exchange = &exchange}));
  if (options.prepare_steps) {
    own.preparation = prepare_steps(*own.device, *own.pipelines,
                                    {{own.runner.get(), session_needs(options, limits)}}, nullptr);
  }
  HEARTH_TRY(own.model->fill(*own.device, file, model_options));
  HEARTH_TRY(file.check_files());
  if (own.preparation) HEARTH_TRY(own.preparation->wait_for_minimum());
  return {};
}

}  // namespace

uint64_t rank_fingerprint(const ModelFile& file) {
  // FNV-1a of what would make ranks compute different things.
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  };
  for (const ModelTensor& tensor : file.tensors()) {
    add(tensor.name);
    add(fmt::format("{} {} {} {}", tensor.rows, tensor.cols, static_cast<int>(tensor.format),
                    tensor.bytes.size()));
  }
  add(fmt::format("{} {} {} {}", sizeof(params::SamplingRow), sizeof(params::SamplingResult),
                  sizeof(params::StepSequence), sizeof(RankTask)));
  return hash;
}

uint64_t rank_free_bytes(Device& device, const SessionOptions& options, uint32_t rank) {
  return bytes_to_plan_with(device.caps(), device.memory().use().device_left_bytes(), options) /
         options.ranks.sharing(rank);
}

Result<RankRoom> rank_room(const DeviceCaps& caps, uint64_t free_bytes, const ModelFile& file,
                           const SessionOptions& options, const RankTask& task) {
  HEARTH_ASSIGN(const ModelPlan plan, plan_model(file, task.held, task.shard, task.deal));
  StepLimits limits = step_limits(options, caps, plan.config.context);
  limits.context = task.context;
  const MemoryPlan memory =
      plan_memory(caps, free_bytes, plan, {.limits = limits, .kv_blocks = task.kv_blocks});
  return RankRoom{
      .weight_bytes = memory.weight_bytes,
      .activation_bytes = memory.activation_bytes,
      .kv_bytes_per_block = memory.kv_bytes_per_block,
      .context = memory.context,
      .max_context = memory.max_context,
      .kv_blocks = memory.kv_blocks,
      .most_swap_blocks = most_swap_blocks(
          task.deal, most_kv_blocks(plan.config, limits.kv, caps.limits.max_allocation_bytes)),
      .fits = memory.fits};
}

Status run_rank_worker(Instance& instance, Link& link, const ModelFile& file,
                       const SessionOptions& options, const SharedRowsList* rows) {
  LinkExchange exchange(link);
  RankDevice own;
  if (const Status opened = open_rank_device(own, instance, options, link.rank()); !opened.ok()) {
    HEARTH_TRY(link.send(0, Channel::kSetup, write_offer(opened.error())));
    return opened;
  }
  const uint64_t free_bytes = rank_free_bytes(*own.device, options, link.rank());
  HEARTH_TRY(link.send(0, Channel::kSetup,
                       write_offer(RankOffer{.device = own.device->caps().name,
                                             .free_bytes = free_bytes,
                                             .fingerprint = rank_fingerprint(file),
                                             .is_cpu = is_cpu(own.device->caps()),
                                             .device_uuid = own.device->caps().device_uuid})));
  for (;;) {
    HEARTH_ASSIGN(const Message message, link.receive(0, Channel::kSetup));
    HEARTH_ASSIGN(const RankTask task, read_task(message));
    if (task.echoes) {
      const Status helped = help_time_links(link);
      if (!helped.ok()) link.fail(helped.error().message);
      HEARTH_TRY(helped);
      continue;
    }
    if (!task.load) {
      HEARTH_TRY(
          link.send(0, Channel::kSetup,
                    write_room(rank_room(own.device->caps(), free_bytes, file, options, task))));
      continue;
    }
    const RankRows shared = rows != nullptr ? rows_of_rank(*rows, link.rank()) : RankRows{};
    const Status loaded = load_layers(own, file, options, task, shared, exchange);
    HEARTH_TRY(link.send(0, Channel::kSetup, write_ready(loaded)));
    HEARTH_TRY(loaded);
    const bool divided = task.shard.is_divided() || task.deal.is_divided();
    if (!is_cpu(own.device->caps())) {
      link.watch_closely(divided ? Channel::kSums : Channel::kRows);
      if (divided) link.watch_closely(Channel::kIds);
    }
    return divided ? ShardLoop(link, *own.runner, exchange).run()
                   : RankLoop(link, *own.runner, shared).run();
  }
}

}  // namespace hearth
