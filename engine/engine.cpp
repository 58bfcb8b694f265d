#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/beam_group.h"

namespace hearth {
namespace {

std::unique_ptr<SharedNgrams> make_outputs(const SpeculationOptions& options) {
  if (options.shared_tokens == 0 || !may_share(options.method)) return nullptr;
  return std::make_unique<SharedNgrams>(SharedNgrams::Options{.tokens = options.shared_tokens});
}

}  // namespace

Engine::Engine(StepExecutor& executor, const Tokenizer* tokenizer, const EngineOptions& options)
    : options_(options),
      tokenizer_(tokenizer),
      grammar_vocabulary_(tokenizer != nullptr ? std::make_unique<GrammarVocabulary>(*tokenizer)
                                               : nullptr),
      publisher_(options.recorded_steps, options.limits.max_sequences, *options.time),
      mailbox_(std::make_shared<Mailbox>(
          EngineSettings{.policy = options.policy, .limits = options.limits}, options.start_paused,
          *options.time)),
      scheduler_(options.limits, options.policy),
      outputs_(make_outputs(options.speculation)),
      requests_({.scheduler = scheduler_,
                 .mailbox = *mailbox_,
                 .publisher = publisher_,
                 .time = *options.time,
                 .outputs = outputs_.get()},
                options.limits.max_sequences),
      drafter_(options.draft_executor == nullptr
                   ? nullptr
                   : std::make_unique<Drafter>(*options.draft_executor, options.drafter)),
      steps_({.executor = executor,
              .scheduler = scheduler_,
              .requests = requests_,
              .publisher = publisher_,
              .time = *options.time,
              .speculation = options.speculation,
              .drafter = drafter_.get()},
             options.check_integrity) {
  scheduler_.observe_blocks(options.block_observer);
  publisher_.show_counts(scheduler_.counts());
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  mailbox_->close();
  thread_.join();
}

// ---- Calls from any thread ----

std::shared_ptr<const grammar::TokenTrie> Engine::token_trie() {
  return grammar_vocabulary_ != nullptr ? grammar_vocabulary_->trie() : nullptr;
}

AddResult Engine::check_prompt(std::span<const TokenId> prompt, size_t requests) {
  AddResult fit = check_request(limits(), {.prompt = prompt, .max_new_tokens = 1});
  if (!fit.accepted()) publisher_.refused(requests);
  return fit;
}

Result<std::vector<TokenStream>> Engine::submit(std::vector<GenerationRequest> requests) {
  const size_t count = requests.size();
  Result<std::vector<TokenStream>> streams = post(std::move(requests));
  if (streams.ok())
    publisher_.submitted(count);
  else
    publisher_.refused(count);
  return streams;
}

// Builds the requests without a lock: there may be many, with long prompts. Their queue places are
// reserved first, so that never more are built than the queue can hold.
Result<std::vector<TokenStream>> Engine::post(std::vector<GenerationRequest> requests) {
  if (!requests.empty()) requests.front().forks_first = false;  // there is no parent
  HEARTH_ASSIGN(const std::vector<BeamRequests> searches, add_beams(requests));
  const size_t count = requests.size();
  HEARTH_ASSIGN(Mailbox::QueuePlaces places, mailbox_->reserve(count));
  ActiveRequest::Place place{.id = places.first_id(),
                             .submitted = options_.time->now(),
                             .limits = limits(),
                             .vocabulary = options_.vocabulary,
                             .tokenizer = tokenizer_,
                             .speculation = options_.speculation,
                             .outputs = outputs_.get(),
                             .contrast = options_.contrast,
                             .keeps_hidden = options_.keeps_hidden};
  place.speculation.draft_model = drafter_ != nullptr;
  std::vector<std::unique_ptr<ActiveRequest>> built;
  std::vector<std::shared_ptr<TokenChannel>> channels;
  for (GenerationRequest& request : requests) {
    if (request.grammar != nullptr && place.trie == nullptr) place.trie = token_trie();
    HEARTH_ASSIGN(built.emplace_back(), ActiveRequest::create(std::move(request), place));
    channels.push_back(built.back()->channel());
    ++place.id;
  }
  join_beams(searches, tokenizer_, built);
  publisher_.posted(count);
  if (Status posted = mailbox_->post(std::move(places), std::move(built)); !posted.ok()) {
    publisher_.unposted(count);
    return std::move(posted).error();
  }
  std::vector<TokenStream> streams;
  for (size_t i = 0; i < count; ++i)
    if (!is_hidden_beam(searches, i)) streams.emplace_back(std::move(channels[i]), mailbox_);
  return streams;
}

Result<TokenStream> Engine::submit(GenerationRequest request) {
  std::vector<GenerationRequest> requests;
  requests.push_back(std::move(request));
  HEARTH_ASSIGN(std::vector<TokenStream> streams, submit(std::move(requests)));
  return std::move(streams.front());
}

Result<std::vector<TokenStream>> Engine::submit_n(const GenerationRequest& request, uint32_t n) {
  std::vector<GenerationRequest> requests(n, request);
  for (uint32_t i = 0; i < n; ++i) {
    requests[i].sampling.seed = request.sampling.seed + i;
    requests[i].forks_first = i > 0;
  }
  return submit(std::move(requests));
}

void Engine::set_priority(RequestId request, int32_t priority) {
  mailbox_->post([this, request, priority] { scheduler_.set_priority(request, priority); });
}

void Engine::inspect(const std::function<void(const Scheduler&)>& look) {
  mailbox_->run([&] { look(scheduler_); });
}

void Engine::set_policy(const Policy& policy) {
  mailbox_->change_settings(
      [&](EngineSettings& settings) { settings.policy = policy; },
      [this, policy] {
        scheduler_.set_policy(policy);
        if (policy.delivery == Delivery::kAtOnce || policy.admission == Admission::kIteration)
          requests_.release_held();
      });
}

void Engine::set_limits(uint32_t max_sequences, uint32_t max_step_tokens, uint32_t pool_blocks) {
  // The device's buffers have the size of the limits the engine was created with.
  max_sequences = std::clamp(max_sequences, 1u, options_.limits.max_sequences);
  max_step_tokens = std::clamp(max_step_tokens, 1u, options_.limits.max_step_tokens);
  const auto change = [&](EngineSettings& settings) {
    SchedulerLimits& limits = settings.limits;
    limits.max_sequences = max_sequences;
    limits.max_step_tokens = max_step_tokens;
    // New requests see a smaller pool immediately, but a larger one only when it exists.
    if (pool_blocks != 0) limits.pool_blocks = std::min(limits.pool_blocks, pool_blocks);
  };
  mailbox_->change_settings(change, [this, max_sequences, max_step_tokens, pool_blocks] {
    scheduler_.set_limits(max_sequences, max_step_tokens, pool_blocks);
    publisher_.show_counts(scheduler_.counts());
    const uint32_t pool = scheduler_.limits().pool_blocks;
    mailbox_->change_settings(
        [pool](EngineSettings& settings) { settings.limits.pool_blocks = pool; }, nullptr);
  });
}

// ---- The engine thread ----

// Each round submits a step and then waits for the previous one, so that the next step is prepared
// while the device runs.
void Engine::run() {
  for (read_mail(); !mail_.closing; read_mail()) {
    requests_.end_expired(options_.time->now());
    // In this order, and not a round later: a paused engine was asked for this one step.
    while (mail_.may_begin_step && steps_.holds_back()) finish_step();
    resume_constrained();
    const bool began = mail_.may_begin_step && begin_step();
    if (steps_.full() || (!began && !steps_.idle()))
      finish_step();
    else if (!began)
      rest();
  }
  while (!steps_.idle()) finish_step();
  requests_.end_all(FinishReason::kCancelled, "the engine was shut down");
}

void Engine::read_mail() {
  mailbox_->collect(mail_, steps_.last_begin());
  scheduler_.set_time(options_.time->now().time_since_epoch());
  scheduler_.expect_arrivals(!mail_.draining);
  for (std::unique_ptr<ActiveRequest>& request : mail_.requests)
    requests_.accept(std::move(request));
  for (const RequestId id : mail_.cancelled) requests_.end(id, FinishReason::kCancelled);
  for (Mailbox::Task& task : mail_.tasks) std::exchange(task, nullptr)();
}

bool Engine::begin_step() {
  const Result<bool> began = steps_.begin();
  if (began.ok()) return *began;
  fail(began.error());
  return true;
}

void Engine::resume_constrained() {
  if (const Status status = steps_.resume_constrained(); !status.ok()) fail(status.error());
}

void Engine::finish_step() {
  if (const Status status = steps_.finish(); !status.ok()) fail(status.error());
}

void Engine::rest() {
  if (const Status status = steps_.rest(); !status.ok()) return fail(status.error());
  sleep();
}

void Engine::sleep() {
  publisher_.show_counts(scheduler_.counts());  // requests may have arrived or ended
  if (steps_.constraining()) return;
  std::optional<EngineClock::time_point> alarm = requests_.next_deadline();
  // A batch that waits to be filled: there is nothing to do before its window closes.
  std::optional<std::chrono::nanoseconds> window;
  if (mail_.may_begin_step) window = scheduler_.window_closes();
  if (window) {
    const EngineClock::time_point closes{
        std::chrono::duration_cast<EngineClock::duration>(*window)};
    alarm = alarm ? std::min(*alarm, closes) : closes;
    if (options_.time->move_towards(*alarm)) return;
  }
  mailbox_->wait({.has_work = !requests_.empty() && !window,
                  .last_begin = steps_.last_begin(),
                  .alarm = alarm});
}

// The device is lost: ends every request and refuses new ones.
void Engine::fail(const Error& error) {
  mailbox_->fail(error.message);
  steps_.abandon();
  read_mail();  // requests that were posted before the mailbox refused them
  requests_.end_all(FinishReason::kError, error.message);
}

}  // namespace hearth
