#include "engine/session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "engine/prepare_steps.h"
#include "engine/rank_worker.h"
#include "runtime/device_check.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "runtime/pipeline_cache.h"

namespace hearth {

namespace {

// The most rows per step with deterministic attention. It needs a work item and room for a partial
// result per split and row; this bounds both. How a prompt is divided into steps does not change
// its results.
uint32_t deterministic_rows(uint32_t context) {
  constexpr uint32_t kMaxItems = 16384;
  return std::max(1u, kMaxItems / divide_up(context, kDeterministicSplit));
}

// Logit rows per step: one for each sequence, and those for what speculation proposes, for
// candidates of contrastive search, or for prompts that are scored. A row of logits is as long as
// the vocabulary, so there are not more than a step can use well.
uint32_t wanted_logit_rows(const SessionOptions& options) {
  constexpr uint64_t kMaxProposedRows = 256;
  const uint32_t rows = std::max(options.logit_rows, options.max_sequences);
  uint64_t proposed = options.candidate_rows;
  if (options.speculation.method != SpeculationMethod::kNone)
    proposed =
        std::max(proposed, uint64_t{options.max_sequences} * most_proposed(options.speculation));
  return rows +
         std::max(options.scored_rows, static_cast<uint32_t>(std::min(proposed, kMaxProposedRows)));
}

}  // namespace

StepLimits step_limits(const SessionOptions& options, const DeviceCaps& caps,
                       uint32_t model_context) {
  // A CPU is as fast with few rows as with many; a GPU needs many at once.
  const uint32_t suits = is_cpu(caps) ? 512 : 2048;
  uint32_t tokens = options.max_step_tokens != 0 ? options.max_step_tokens : suits;
  if (options.deterministic) {
    const uint32_t context = options.context == 0 ? model_context : options.context;
    tokens = std::min(tokens, deterministic_rows(std::min(context, model_context)));
  }
  // Kernels use at least one workgroup per row, and rows are rounded up to a bucket's size.
  const uint32_t most = std::bit_floor(*std::ranges::min_element(caps.limits.max_group_count));
  const uint32_t rows = std::min(std::max(tokens, options.max_sequences), most);
  const uint32_t logit_rows = std::min(wanted_logit_rows(options), rows);
  return {.rows = rows,
          .sequences = options.max_sequences,
          .candidates = options.ranks.several()  // where contrastive search is refused
                            ? 0
                            : logit_rows - std::min(logit_rows, options.max_sequences),
          .logit_rows = logit_rows,
          .context = options.context,
          .masks = logit_rows,  // every request may have a grammar
          .kv = options.kv,
          .deterministic = options.deterministic};
}

std::string context_notice(uint32_t asked, uint32_t model_context) {
  if (asked <= model_context) return {};
  return fmt::format("--ctx {} is more than the model's {} tokens; using {}", asked, model_context,
                     model_context);
}

std::string pool_notice(const SessionOptions& options, const MemoryPlan& plan) {
  const uint64_t pool_tokens = uint64_t{plan.kv_blocks} * kTokensPerBlock;
  const std::string longest = plan.context > pool_tokens
                                  ? fmt::format("; the longest sequence has {} tokens", pool_tokens)
                                  : std::string();
  if (options.kv_blocks > plan.kv_blocks)
    return fmt::format("--kv-blocks {} is more than fits; using {}{}", options.kv_blocks,
                       plan.kv_blocks, longest);
  if (options.kv_blocks == 0 || options.context == 0 || longest.empty()) return {};
  return fmt::format("--ctx {} does not fit into --kv-blocks {}{}", options.context,
                     options.kv_blocks, longest);
}

bool has_draft_model(const SessionOptions& options) {
  const SpeculationMethod method = options.speculation.method;
  return method == SpeculationMethod::kDraft || (may_draft(method) && !options.draft_model.empty());
}

uint64_t bytes_to_plan_with(const DeviceCaps& caps, uint64_t free_bytes,
                            const SessionOptions& options) {
  // With unified memory, swapped-out blocks take the same memory as the device's.
  return caps.unified_memory() ? free_bytes - std::min(free_bytes, options.swap_bytes) : free_bytes;
}

Result<std::unique_ptr<Session>> Session::open(std::unique_ptr<ModelFile> file,
                                               const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  const Status loaded = session->load(std::move(file));
  // First: what went missing in a file explains every other error.
  HEARTH_TRY(session->file_->check_files());
  HEARTH_TRY(loaded);
  return session;
}

// Destroys users before what they use.
Session::~Session() {
  stop_engine();
  ranks_.reset();
  preparation_.reset();
  amateur_executor_.reset();
  draft_.reset();
  runner_.reset();  // it reads the amateur's logits
  amateur_.reset();
  model_.reset();
}

Status Session::load(std::unique_ptr<ModelFile> file) {
  file_ = std::move(file);
  // Report a bad file before opening a device.
  HEARTH_ASSIGN(ModelPlan plan, plan_model(*file_));
  if (options_.ranks.several() && !options_.amateur.empty())
    return unsupported("--amateur cannot be combined with several ranks");
  if (const std::string notice = context_notice(options_.context, plan.config.context);
      !notice.empty())
    log_line(notice);
  if (!options_.amateur.empty()) {
    HEARTH_ASSIGN(amateur_,
                  CompanionModel::open(CompanionRole::kAmateur, options_.amateur, *file_));
  }
  if (has_draft_model(options_)) {
    HEARTH_ASSIGN(draft_,
                  CompanionModel::open(CompanionRole::kDraft, options_.draft_model, *file_));
  }
  HEARTH_TRY(open_text());
  const SamplingDefaults sampling = sampling_defaults(file_->metadata());
  default_sampling_ = sampling.options;
  if (!sampling.ignored.empty())
    log_line(
        fmt::format("{}: default sampling settings ignored: {}", file_->name(), sampling.ignored));
  HEARTH_TRY(open_device());
  if (options_.ranks.several()) {
    HEARTH_ASSIGN(ranks_, RankGroup::open(*instance_, *file_, options_));
  }
  const uint64_t free_bytes = rank_free_bytes(*device_, options_, 0);
  if (device_->caps().unified_memory() && options_.swap_bytes > 0 && free_bytes == 0)
    return Error{ErrorKind::kOutOfMemory,
                 fmt::format("{} of swap space (--swap) leave the model no memory",
                             format_bytes(options_.swap_bytes))};
  if (ranks_) {
    HEARTH_ASSIGN(const ModelShare share,
                  ranks_->divide({.device = device_->caps().name,
                                  .free_bytes = free_bytes,
                                  .fingerprint = rank_fingerprint(*file_),
                                  .is_cpu = is_cpu(device_->caps()),
                                  .device_uuid = device_->caps().device_uuid}));
    HEARTH_ASSIGN(plan, plan_model(*file_, share.held, share.shard, share.deal));
  }

  StepLimits limits = step_limits(options_, device_->caps(), plan.config.context);
  if (amateur_)
    limits.context =
        amateur_->context_limit(limits.context == 0 ? plan.config.context : limits.context);
  const auto plan_limits = [&]() -> Status {
    MemoryRequest request{.limits = limits, .kv_blocks = options_.kv_blocks};
    for (const auto* companion : {&draft_, &amateur_})
      if (*companion) (*companion)->add_memory(device_->caps(), limits, request);
    memory_ = plan_memory(device_->caps(), free_bytes, plan, request);
    return ranks_ ? ranks_->plan(memory_, options_.kv_blocks) : Status();
  };
  HEARTH_TRY(plan_limits());
  // If no context was requested, it may be shorter than the model's.
  constexpr uint32_t kShortestContext = 256;
  if (!memory_.fits && options_.context == 0 && memory_.max_context >= kShortestContext) {
    limits.context = memory_.max_context;
    HEARTH_TRY(plan_limits());
  }
  limits.context = memory_.context;
  if (memory_.kv_blocks == 0 || (!memory_.fits && options_.kv_blocks == 0))
    return Error{
        ErrorKind::kOutOfMemory,
        fmt::format(
            "{} does not fit on {}: it needs {} for weights, {} for activations and {} for the KV "
            "cache of one context of {} tokens, but {} are free",
            file_->name(), device_->caps().name, format_bytes(memory_.weight_bytes),
            format_bytes(memory_.activation_bytes),
            format_bytes(uint64_t{limits.context} * memory_.kv_bytes_per_token), limits.context,
            format_bytes(free_bytes))};

  if (const std::string notice = pool_notice(options_, memory_); !notice.empty()) log_line(notice);

  // Steps can be recorded before the weights are there, so their kernels are compiled meanwhile.
  const ModelOptions model_options{.context = limits.context,
                                   .held = plan.config.held,
                                   .shard = plan.config.shard,
                                   .deal = plan.config.deal,
                                   .progress = options_.progress};
  HEARTH_ASSIGN(model_, Model::allocate(*device_, *file_, model_options));
  const uint64_t most_swapped = most_swap_blocks(
      plan.config.deal,
      most_kv_blocks(plan.config, limits.kv, device_->caps().limits.max_allocation_bytes));
  StepRunnerOptions runner_options{
      .limits = limits,
      .slots = options_.max_sequences,
      .kv_blocks = memory_.kv_blocks,
      .swap_blocks = ranks_ ? ranks_->swap_blocks(options_.swap_bytes, most_swapped)
                            : static_cast<uint32_t>(
                                  std::min(options_.swap_bytes / memory_.kv_bytes_per_block,
                                           most_swapped))};
  if (draft_ && !ranks_) runner_options.drafted_places = drafted_places(runner_options.slots);
  if (ranks_) {
    HEARTH_ASSIGN(runner_options.limits.divided_rows,
                  ranks_->divided_rows(*device_, plan, runner_options.limits));
    HEARTH_TRY(ranks_->load(runner_options, plan.config));
    shared_rows_ = ranks_->shared_rows();
    runner_options.rows = rows_of_rank(*shared_rows_, 0);
    runner_options.waits_promptly = true;
    runner_options.exchange = ranks_->exchange();
  }
  HEARTH_ASSIGN(runner_, StepRunner::create(*device_, *pipelines_, *model_, runner_options));
  if (amateur_) {
    HEARTH_TRY(amateur_->allocate(*device_, *pipelines_, amateur_options(*runner_)));
    amateur_executor_ = std::make_unique<AmateurExecutor>(*runner_, amateur_->runner());
  }
  if (draft_)
    HEARTH_TRY(draft_->allocate(*device_, *pipelines_,
                                {.limits = limits,
                                 .slots = limits.sequences,
                                 .drafted_places = drafted_places(limits.sequences),
                                 .kv_blocks = memory_.kv_blocks,
                                 .sampled_ids = ranks_ ? nullptr : &runner_->sampled_ids()}));
  if (options_.prepare_steps) start_preparation();
  HEARTH_TRY(model_->fill(*device_, *file_, model_options));
  for (const auto* companion : {&draft_, &amateur_})
    if (*companion) HEARTH_TRY((*companion)->fill(*device_));
  if (preparation_) HEARTH_TRY(preparation_->wait_for_minimum());
  return ranks_ ? ranks_->start(*runner_) : Status();
}

Status Session::open_device() {
  HEARTH_ASSIGN(instance_, Instance::create({.validation = options_.validation}));
  HEARTH_ASSIGN(device_, Device::open(*instance_, options_.ranks.device(0, options_.device)));
  HEARTH_ASSIGN(pipelines_,
                PipelineStore::create(*device_, {.cache_directory = default_cache_directory()}));
  return check_device(*device_, *pipelines_);
}

void Session::start_preparation() {
  std::vector<PreparedRunner> runners{
      {runner_.get(), session_needs(options_, runner_->options().limits)}};
  for (const auto* companion : {&draft_, &amateur_})
    if (*companion)
      runners.push_back(
          {&(*companion)->runner(), companion_needs(options_, (*companion)->role())});
  preparation_ = prepare_steps(*device_, *pipelines_, runners, options_.prepared);
}

Status Session::open_text() {
  HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(*file_));
  if (vocabulary.kind == VocabularyKind::kNone) return {};
  chat_template_ = ChatTemplate::create(vocabulary, options_.special_in_messages);
  HEARTH_ASSIGN(tokenizer_, Tokenizer::create(std::move(vocabulary)));
  return {};
}

Result<const ChatTemplate*> Session::chat_template() const {
  if (!chat_template_.ok()) return chat_template_.error();
  return chat_template_->get();
}

EngineOptions Session::engine_options() const {
  const StepRunnerOptions& runner = runner_->options();
  // Steps may be limited to fewer tokens than the runner has room for.
  const uint32_t wanted = options_.max_step_tokens;
  EngineOptions options{.policy = options_.policy,
                        .vocabulary = model_->config().vocabulary,
                        .start_paused = options_.start_paused,
                        .speculation = options_.speculation,
                        .block_observer = options_.block_observer};
  options.speculation.in_place = options_.deterministic;
  options.speculation.on_cpu = device_->caps().type == DeviceType::kCpu;
  options.limits = {
      .max_sequences = runner.slots,
      .max_step_tokens = wanted == 0 ? runner.limits.rows : std::min(wanted, runner.limits.rows),
      .context = runner.limits.context,
      .pool_blocks = runner.kv_blocks,
      .swap_blocks = runner.swap_blocks,
      .max_queue = options_.max_queue,
      .max_proposed = runner.limits.logit_rows - std::min(runner.limits.logit_rows, runner.slots),
      .step_ms = wanted == 0 ? kDefaultStepMs : 0};
  if (amateur_) options.contrast = options_.contrast;
  options.keeps_hidden = !options_.ranks.several();
  if (draft_) {
    options.draft_executor = &draft_->runner();
    const StepRunnerOptions& drafting = draft_->runner().options();
    options.drafter = {.slots = drafting.slots,
                       .step_rows = drafting.limits.rows,
                       .context = drafting.limits.context,
                       .blocks = drafting.kv_blocks,
                       .vocabulary = options.vocabulary,
                       .draft_vocabulary = draft_->plan().config.vocabulary,
                       .min_probability = options_.speculation.draft_min_p,
                       .first_place = runner.slots,
                       .shares_places = !ranks_};
    constexpr uint32_t kBranches = 3;  // of a tree, at each place
    if (options_.speculation.method == SpeculationMethod::kTree)
      options.drafter.branches = kBranches;
  }
  return options;
}

StepExecutor& Session::executor() {
  if (ranks_) return ranks_->executor();
  if (amateur_executor_) return *amateur_executor_;
  return *runner_;
}

Engine& Session::engine() {
  if (engine_) return *engine_;
  engine_ = std::make_unique<Engine>(executor(), tokenizer_.get(), engine_options());
  if (ranks_)
    ranks_->on_loss([this](const std::string& reason) {
      engine_->refuse(reason);
      if (options_.rank_lost) options_.rank_lost(reason);
    });
  return *engine_;
}

void Session::stop_engine() {
  if (ranks_) ranks_->on_loss(nullptr);
  engine_.reset();
}

}  // namespace hearth
