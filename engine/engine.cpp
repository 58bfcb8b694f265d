#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "params/embed.h"

namespace hearth {
namespace {

// Most block-table entries that one step's batch reserves in advance.
constexpr size_t kMaxReservedBlockIds = size_t{1} << 20;

}  // namespace

Engine::Engine(StepExecutor& executor, const Tokenizer* tokenizer, const EngineOptions& options)
    : executor_(executor),
      tokenizer_(tokenizer),
      options_(options),
      records_(options.recorded_steps, options.limits.max_sequences),
      control_{.paused = options.start_paused},
      policy_(options.policy),
      limits_(options.limits),
      scheduler_(options.limits, options.policy) {
  const size_t sequences = limits_.max_sequences;
  batch_.reserve(limits_.max_step_tokens, sequences,
                 std::min(kMaxReservedBlockIds, sequences * blocks_for(limits_.context)));
  for (StepInFlight& step : steps_) {
    step.sampled.reserve(sequences);
    step.record.reserve(sequences);
  }
  finished_.reserve(sequences);
  cancelled_since_record_.reserve(sequences);
  arrived_.reserve(sequences);
  show_counts(scheduler_.counts());
  thread_ = std::thread([this] { loop(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    control_.closing = true;
  }
  wake_.notify_all();
  thread_.join();
}

Engine::QueuePlaces::~QueuePlaces() {
  const std::lock_guard lock(engine.mutex_);
  engine.queued_ -= count;
}

Status Engine::check_room(size_t requests) const {
  if (!failure_.empty()) return Error{ErrorKind::kDeviceLost, failure_};
  if (control_.draining || control_.closing)
    return Error{ErrorKind::kUnsupported,
                 "the engine is shutting down and accepts no more requests"};
  if (requests > limits_.max_queue)
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} requests at once are more than the queue of {} can hold", requests,
                             limits_.max_queue)};
  if (queued_ + requests > limits_.max_queue)
    return Error{
        ErrorKind::kBusy,
        fmt::format("{} requests are already waiting, and the queue takes {}; try again later",
                    queued_, limits_.max_queue)};
  return {};
}

AddResult Engine::check_prompt(std::span<const TokenId> prompt, size_t requests) {
  AddResult fit = check_request(limits(), {.prompt = prompt, .max_new_tokens = 1});
  if (!fit.accepted()) metrics_.requests_refused.add(requests);
  return fit;
}

Result<std::unique_ptr<ActiveRequest>> Engine::make_request(GenerationRequest request, RequestId id,
                                                            const SchedulerLimits& limits) const {
  const auto invalid = [](std::string message) {
    return Error{ErrorKind::kInvalid, std::move(message)};
  };
  // The device interprets ids with the bit kSampledId differently.
  const uint32_t ids = options_.vocabulary != 0 ? options_.vocabulary : params::kSampledId;
  for (const TokenId token : request.prompt)
    if (token >= ids)
      return invalid(fmt::format("token id {} is not in the vocabulary of {}", token, ids));
  const auto prompt = static_cast<uint32_t>(request.prompt.size());
  // A request without a limit of its own may fill the rest of the context and of the pool.
  const uint64_t pool_tokens = uint64_t{limits.pool_blocks} * kTokensPerBlock;
  const uint64_t longest = std::min<uint64_t>(limits.context, pool_tokens);
  const uint32_t left = prompt < longest ? static_cast<uint32_t>(longest - prompt) : 1;
  const uint32_t max_new = request.max_tokens == 0 ? left : std::min(request.max_tokens, left);
  if (const AddResult fit =
          check_request(limits, {.prompt = request.prompt, .max_new_tokens = max_new});
      !fit.accepted())
    return invalid(fit.message);
  if (request.biases.size() > StepExecutor::kMaxBiases)
    return invalid(fmt::format("{} logit biases are more than the {} a request may have",
                               request.biases.size(), StepExecutor::kMaxBiases));
  // Two biases for one token would be added concurrently by the kernel.
  std::ranges::sort(request.biases, {}, &params::TokenBias::token);
  const auto twice = std::ranges::adjacent_find(request.biases, {}, &params::TokenBias::token);
  if (twice != request.biases.end())
    return invalid(fmt::format("token {} has two logit biases", twice->token));
  HEARTH_ASSIGN(const params::SamplingRow sampling, make_sampling_row(request.sampling, {}));
  auto stream = std::make_shared<TokenStream>(id, max_new);
  return std::make_unique<ActiveRequest>(std::move(request), tokenizer_, sampling, max_new,
                                         std::move(stream), clock_now());
}

Result<std::vector<std::shared_ptr<TokenStream>>> Engine::submit(
    std::vector<GenerationRequest> requests) {
  const size_t count = requests.size();
  std::vector<std::shared_ptr<TokenStream>> streams;
  const auto queue = [&]() -> Status {
    SchedulerLimits limits;
    RequestId id = 0;
    QueuePlaces places{.engine = *this};
    {
      const std::lock_guard lock(mutex_);
      HEARTH_TRY(check_room(count));
      places.count = count;
      queued_ += count;
      limits = limits_;
      id = next_id_;
      next_id_ += count;
    }
    // Builds the requests without holding the lock, which every step needs: there may be many, with
    // long prompts. Their queue places are reserved already, so never more are built than the queue
    // can hold.
    std::vector<std::unique_ptr<ActiveRequest>> made;
    if (count > 0) requests.front().forks_first = false;  // there is no parent
    for (GenerationRequest& request : requests) {
      HEARTH_ASSIGN(std::unique_ptr<ActiveRequest> active,
                    make_request(std::move(request), id++, limits));
      streams.push_back(active->stream());
      made.push_back(std::move(active));
    }
    const std::lock_guard lock(mutex_);
    HEARTH_TRY(check_room(0));  // the engine may have failed or closed meanwhile
    new_requests_.insert(new_requests_.end(), std::make_move_iterator(made.begin()),
                         std::make_move_iterator(made.end()));
    places.count = 0;
    unfinished_ += count;
    metrics_.waiting.set(metrics_.waiting.value() + count);
    return {};
  };
  const Status status = queue();
  (status.ok() ? metrics_.requests_submitted : metrics_.requests_refused).add(count);
  if (!status.ok()) return status.error();
  wake_.notify_all();
  return streams;
}

Result<std::shared_ptr<TokenStream>> Engine::submit(GenerationRequest request) {
  std::vector<GenerationRequest> requests;
  requests.push_back(std::move(request));
  HEARTH_ASSIGN(std::vector<std::shared_ptr<TokenStream>> streams, submit(std::move(requests)));
  return std::move(streams.front());
}

Result<std::vector<std::shared_ptr<TokenStream>>> Engine::submit_n(const GenerationRequest& request,
                                                                   uint32_t n) {
  std::vector<GenerationRequest> requests(n, request);
  for (uint32_t i = 0; i < n; ++i) {
    requests[i].sampling.seed = request.sampling.seed + i;
    requests[i].forks_first = i > 0;
  }
  return submit(std::move(requests));
}

void Engine::cancel(RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(request);
  }
  wake_.notify_all();
}

void Engine::set_priority(RequestId request, int32_t priority) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back([this, request, priority] { scheduler_.set_priority(request, priority); });
  }
  wake_.notify_all();
}

void Engine::run_task(std::function<void()> task) {
  bool done = false;
  std::unique_lock lock(mutex_);
  tasks_.push_back([&, task = std::move(task)] {
    task();
    const std::lock_guard inner(mutex_);
    done = true;
    changed_.notify_all();
  });
  wake_.notify_all();
  changed_.wait(lock, [&] { return done; });
}

void Engine::inspect(const std::function<void(const Scheduler&)>& look) {
  run_task([&] { look(scheduler_); });
}

void Engine::set_policy(const Policy& policy) {
  {
    const std::lock_guard lock(mutex_);
    policy_ = policy;
    tasks_.push_back([this, policy] { scheduler_.set_policy(policy); });
  }
  wake_.notify_all();
}

void Engine::set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks) {
  {
    const std::lock_guard lock(mutex_);
    // The device's buffers have the size of the limits the engine was created with.
    limits_.max_sequences = std::clamp(max_sequences, 1u, options_.limits.max_sequences);
    limits_.max_step_tokens = std::clamp(max_step_tokens, 1u, options_.limits.max_step_tokens);
    // New requests see a smaller pool immediately, but a larger one only when it exists.
    if (pool_blocks != 0) limits_.pool_blocks = std::min(limits_.pool_blocks, pool_blocks);
    tasks_.push_back([this, limits = limits_, pool_blocks] {
      scheduler_.set_limits(limits.max_sequences, limits.max_step_tokens, pool_blocks);
      show_counts(scheduler_.counts());
      const std::lock_guard inner(mutex_);
      limits_.pool_blocks = scheduler_.limits().pool_blocks;
    });
  }
  wake_.notify_all();
}

Policy Engine::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

SchedulerLimits Engine::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

template <class Change>
void Engine::change_control(Change change) {
  {
    const std::lock_guard lock(mutex_);
    change(control_);
  }
  wake_.notify_all();
}

void Engine::pause() {
  change_control([](Control& control) {
    control.paused = true;
    control.single_steps = 0;
  });
}

void Engine::resume() {
  change_control([](Control& control) { control.paused = false; });
}

void Engine::step_once() {
  change_control([](Control& control) { ++control.single_steps; });
}

void Engine::set_pace(double steps_per_s) {
  constexpr double kSlowest = 1e-3;
  change_control([&](Control& control) {
    control.pace = steps_per_s > 0 ? std::max(steps_per_s, kSlowest) : 0;
  });
}

void Engine::drain() {
  change_control([](Control& control) {
    control.draining = true;
    control.paused = false;
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return unfinished_ == 0; });
}

void Engine::undrain() {
  change_control([](Control& control) { control.draining = false; });
}

EngineState Engine::state() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return EngineState::kFailed;
  if (control_.draining || control_.closing) return EngineState::kDraining;
  return control_.paused ? EngineState::kPaused : EngineState::kRunning;
}

std::string Engine::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

double Engine::seconds() const {
  return std::chrono::duration<double>(clock_now() - created_at_).count();
}

}  // namespace hearth
