#include "tools/bench/model_bench.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

// With separate phases and a time between tokens to keep, decode steps and prompt steps take turns.
constexpr uint32_t kPromptStepsInARow = 1;
// Longer than any step, so that prompts are computed in as few steps as possible.
constexpr uint32_t kNoTargetMs = 3'600'000;

// How many tokens the first sequences generate while the prompts of the last are still processed.
uint32_t early_tokens(const ModelBenchOptions& bench, uint32_t batch, uint32_t step_tokens) {
  const uint64_t prompts = uint64_t{batch} * std::max(1u, bench.context);
  return static_cast<uint32_t>(prompts / step_tokens / kPromptStepsInARow) + 2;
}

uint32_t sequence_tokens(const ModelBenchOptions& bench, uint32_t batch, uint32_t step_tokens) {
  return std::max(1u, bench.context) + bench.tokens + early_tokens(bench, batch, step_tokens);
}

bool decodes_all(const StepRecord& record, uint32_t batch) {
  return record.members.size() == batch &&
         std::ranges::all_of(record.members, [](const StepMember& member) {
           return member.phase == StepPhase::kDecode;
         });
}

}  // namespace

SessionOptions bench_session_options(SessionOptions options, const ModelBenchOptions& bench) {
  // Planned for the smallest default step of any device.
  const uint32_t step_tokens = options.max_step_tokens != 0 ? options.max_step_tokens : 512;
  uint32_t context = bench.prompt + 1;
  uint32_t blocks = blocks_for(context);
  for (const uint32_t batch : bench.batches) {
    const uint32_t tokens = sequence_tokens(bench, batch, step_tokens);
    context = std::max(context, tokens);
    blocks = std::max(blocks, batch * (blocks_for(tokens) + 1));
    options.max_sequences = std::max(options.max_sequences, batch);
    options.max_queue = std::max(options.max_queue, batch);
  }
  if (options.context == 0) options.context = context;
  options.kv_blocks = std::max(options.kv_blocks, blocks);
  options.policy.phases = Phases::kSeparate;
  options.policy.tbt_target_ms = kNoTargetMs;
  options.policy.prefix_cache = false;
  return options;
}

CeilingShare ceiling_share(const Cost& cost, double seconds, const Ceilings& ceilings) {
  return ceiling_share(cost.bytes, cost.flops, seconds, ceilings,
                       ceilings.matrix_flops_per_s > ceilings.flops_per_s);
}

StepBatch bench_step(uint32_t batch, uint32_t position, uint32_t rows) {
  StepBatch step;
  const uint32_t blocks = blocks_for(position + rows);
  std::vector<uint32_t> ids(rows), table(blocks);
  for (uint32_t row = 0; row < rows; ++row) ids[row] = row % 64;
  for (uint32_t i = 0; i < batch; ++i) {
    for (uint32_t block = 0; block < blocks; ++block) table[block] = i * blocks + block;
    step.add_sequence(position, ids, table);
    step.logit_rows.push_back((i + 1) * rows - 1);
    step.sampling.push_back(*make_sampling_row({.temperature = 0}, {.id_index = i}));
  }
  return step;
}

std::vector<double> done_seconds(std::span<const StepRecord> records) {
  std::vector<double> done;
  for (const StepRecord& record : records) {
    const double began =
        done.empty() ? record.submit_seconds : std::max(record.submit_seconds, done.back());
    done.push_back(began + record.run_seconds);
  }
  return done;
}

GenerationRequest ModelBench::request(uint32_t prompt_tokens, uint32_t max_tokens) {
  std::mt19937 random(++requests_);
  std::uniform_int_distribution<uint32_t> id(0, session_.model().config().vocabulary - 1);
  GenerationRequest request{.max_tokens = max_tokens, .ignore_end = true};
  request.sampling.temperature = 0;
  for (uint32_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(id(random));
  return request;
}

Result<double> ModelBench::prompt_seconds() {
  HEARTH_ASSIGN(TokenStream stream, session_.engine().submit(request(options_.prompt, 1)));
  while (stream.next()) {
  }
  const GenerationEnd& end = stream.end();
  if (end.reason == FinishReason::kError) return Error{ErrorKind::kInternal, end.message};
  return end.times.first_token;
}

Result<double> ModelBench::decode_seconds(uint32_t batch, uint32_t tokens) {
  Engine& engine = session_.engine();
  const uint32_t wanted = tokens + early_tokens(options_, batch, step_tokens());
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < batch; ++i)
    requests.push_back(request(std::max(1u, options_.context), wanted));
  const uint64_t first_record = engine.records().written();
  HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
  for (TokenStream& stream : streams) {
    while (stream.next()) {
    }
    if (stream.end().reason == FinishReason::kError)
      return Error{ErrorKind::kInternal, stream.end().message};
  }

  // The record of the last step may not have been written yet. It is not needed, because
  // early_tokens() more tokens are generated than are timed.
  std::vector<StepRecord> records;
  for (uint64_t i = first_record; i < engine.records().written(); ++i)
    if (StepRecord record; engine.records().read(i, record)) records.push_back(std::move(record));
  const std::vector<double> done = done_seconds(records);
  for (size_t first = 1; first + tokens <= records.size(); ++first) {
    const auto steps = std::span(records).subspan(first, tokens);
    if (std::ranges::all_of(steps, [&](const auto& step) { return decodes_all(step, batch); }))
      return done[first + tokens - 1] - done[first - 1];
  }
  return Error{ErrorKind::kInternal,
               fmt::format("{} sequences never decoded together for {} steps", batch, tokens)};
}

template <class Once>
Result<ModelTime> ModelBench::repeat(ModelTime time, const Cost& cost, const OnRun& on_run,
                                     Once once) const {
  // As sequences grow, steps of new sizes come up. Each is recorded and its kernels compiled when
  // it comes up first, and the GPU's clock drops meanwhile. So the first run does not count towards
  // warming up the clock.
  constexpr double kWarmUpSeconds = 0.5;
  constexpr uint32_t kMostWarmUps = 64;
  const uint32_t runs = options_.repetitions + 1;
  on_run(0, runs);
  HEARTH_TRY(once());
  double warm = is_cpu(session_.device().caps()) ? kWarmUpSeconds : 0;
  for (uint32_t i = 0; warm < kWarmUpSeconds && i < kMostWarmUps; ++i) {
    on_run(0, runs);
    HEARTH_ASSIGN(const double taken, once());
    warm += taken;
  }
  std::vector<double> rates;
  double seconds = 0;
  for (uint32_t i = 0; i < options_.repetitions; ++i) {
    on_run(i + 1, runs);
    HEARTH_ASSIGN(const double taken, once());
    seconds += taken;
    rates.push_back(time.tokens / taken);
  }
  const auto count = static_cast<double>(rates.size());
  seconds /= count;
  time.seconds = seconds;
  for (const double rate : rates) time.tokens_per_s += rate / count;
  if (rates.size() > 1) {
    double squares = 0;
    for (const double rate : rates)
      squares += (rate - time.tokens_per_s) * (rate - time.tokens_per_s);
    time.stddev = std::sqrt(squares / (count - 1));
  }
  time.bytes_per_s = cost.bytes / seconds;
  time.flops_per_s = cost.flops / seconds;
  time.ceiling = ceiling_share(cost, seconds, ceilings_);
  return time;
}

Cost ModelBench::prompt_cost() const {
  Cost cost;
  for (uint32_t first = 0; first < options_.prompt; first += step_tokens()) {
    StepBatch step = bench_step(1, first, std::min(step_tokens(), options_.prompt - first));
    if (first + step_tokens() < options_.prompt) step.logit_rows.clear();
    cost += whole_step_cost(session_.model().plan(), session_.options().kv, step);
  }
  return cost;
}

Cost ModelBench::decode_cost(uint32_t batch) const {
  // Attention reads one more token in every step, so the step in the middle costs the average.
  const uint32_t middle = std::max(1u, options_.context) + options_.tokens / 2;
  Cost cost;
  const Cost step =
      whole_step_cost(session_.model().plan(), session_.options().kv, bench_step(batch, middle, 1));
  for (uint32_t i = 0; i < options_.tokens; ++i) cost += step;
  return cost;
}

// The time at the ceiling that limits the prompt: the share that it would be of one second.
double ModelBench::ideal_prompt_seconds() const {
  return ceiling_share(prompt_cost(), 1.0, ceilings_).share;
}

double ModelBench::ideal_decode_seconds(uint32_t batch) const {
  return ceiling_share(decode_cost(batch), 1.0, ceilings_).share;
}

Result<ModelTime> ModelBench::prompt(const OnRun& on_run) {
  const uint32_t steps = divide_up(options_.prompt, step_tokens());
  return repeat({.test = "prompt", .tokens = options_.prompt, .steps = steps}, prompt_cost(),
                on_run, [&] { return prompt_seconds(); });
}

Result<ModelTime> ModelBench::decode(uint32_t batch, const OnRun& on_run) {
  return repeat({.test = "decode",
                 .batch = batch,
                 .tokens = batch * options_.tokens,
                 .steps = options_.tokens},
                decode_cost(batch), on_run, [&] { return decode_seconds(batch, options_.tokens); });
}

}  // namespace hearth
