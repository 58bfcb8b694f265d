#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <span>

#include <fmt/format.h>

#include "engine/sampling/sampler.h"
#include "engine/sampling/stages.h"
#include "runtime/memory.h"
#include "runtime/queue.h"
#include "tools/bench/kernel_cases.h"

namespace hearth {
namespace {

// Device memory that holds `copies` of these bytes.
Result<const Buffer*> add_data(KernelBench& bench, KernelCaseSet& set,
                               std::span<const std::byte> bytes, uint64_t copies = 1) {
  Memory& memory = bench.device().memory();
  HEARTH_ASSIGN(const Buffer upload, memory.allocate({.bytes = bytes.size(),
                                                      .intent = MemoryIntent::kUpload,
                                                      .name = "bench upload"}));
  std::memcpy(upload.mapped(), bytes.data(), bytes.size());
  HEARTH_TRY(upload.flush());
  HEARTH_ASSIGN(Buffer buffer,
                memory.allocate({.bytes = bytes.size() * copies, .name = "bench data"}));
  HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(bench.device()));
  for (uint64_t i = 0; i < copies; ++i)
    recorder.copy(upload.all(), buffer.slice(i * bytes.size(), bytes.size()));
  HEARTH_ASSIGN(const CommandBuffer copy, recorder.finish());
  HEARTH_TRY(bench.device().compute().run(copy));
  set.buffers.push_back(std::make_unique<Buffer>(std::move(buffer)));
  return set.buffers.back().get();
}

struct NamedOptions {
  const char* name;
  SamplingOptions options;
  bool masked = false;
};

const NamedOptions kOptions[] = {
    {"greedy", {.temperature = 0}},
    {"top_k 40, top_p 0.95", {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}},
    {"top_k 40, 20 logprobs", {.top_k = 40, .top_logprobs = 20}},
    {"top_k 40, penalties", {.top_k = 40, .presence_penalty = 1e-30f}},
    {"top_p 0.95", {.temperature = 0.8f, .top_p = 0.95f}},
    {"min_p 0.05", {.temperature = 0.8f, .min_p = 0.05f}},
    {"temperature 0.8", {.temperature = 0.8f}},
    {"top_k 40, mask", {.top_k = 40}, true},
    {"typical_p 0.95", {.temperature = 0.8f, .typical_p = 0.95f}},
    {"mirostat", {.temperature = 0.8f, .mirostat = 2}},
    {"all samplers",
     {.temperature = 0.8f,
      .top_k = 1000,
      .top_p = 0.98f,
      .min_p = 0.001f,
      .presence_penalty = 1e-30f,
      .typical_p = 0.98f,
      .top_n_sigma = 3.0f,
      .top_a = 0.01f,
      .epsilon_cutoff = 1e-4f,
      .eta_cutoff = 1e-4f,
      .xtc_probability = 1.0f,
      .dynatemp_range = 0.3f,
      .smoothing_factor = 0.3f,
      .dry_multiplier = 1e-30f}},
};

constexpr uint32_t kDryTokens = 64;

// Adds a row's stages and DRY penalties to the words.
void add_stages(const SamplingOptions& options, uint32_t vocab, params::SamplingRow& row,
                std::vector<uint32_t>& words) {
  const params::SamplingStages stages = make_stages(options);
  const auto bits = std::bit_cast<std::array<uint32_t, sizeof(stages) / sizeof(uint32_t)>>(stages);
  row.stages = static_cast<uint32_t>(words.size());
  words.insert(words.end(), bits.begin(), bits.end());
  if (!uses_dry(options)) return;
  row.flags |= params::kSamplingDry;
  row.dry = static_cast<uint32_t>(words.size());
  words.push_back(kDryTokens);
  for (uint32_t i = 0; i < kDryTokens; ++i) {
    words.push_back(i * 997 % vocab);
    words.push_back(std::bit_cast<uint32_t>(options.dry_multiplier));
  }
}

Result<KernelCaseSet> sampling_cases(KernelBench& bench) {
  constexpr uint32_t kHistory = 1024;
  KernelCaseSet set;
  const DeviceCaps& caps = bench.device().caps();
  const bool cpu = caps.type == DeviceType::kCpu;
  // Logits distributed like a model's, in more copies than fit a cache.
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  constexpr uint64_t kResultBytes = sizeof(params::SamplingResult);
  constexpr uint64_t kTopBytes = params::kMaxTopLogprobs * sizeof(params::TokenLogprob);
  const uint32_t vocab = cpu ? 32000 : 128256;
  const uint32_t most_rows = cpu ? 16 : 64;
  const uint64_t copies = cpu ? 4 : 8;
  std::vector<float> values(size_t{most_rows} * vocab);
  for (float& value : values) value = normal(generator);
  HEARTH_ASSIGN(const Buffer* logits,
                add_data(bench, set, std::as_bytes(std::span(values)), copies));
  std::vector<params::TokenCount> entries;
  for (uint32_t i = 0; i < most_rows * kHistory; ++i)
    entries.push_back({.token = i * 31 % vocab, .count = 1});
  HEARTH_ASSIGN(const Buffer* history, add_data(bench, set, std::as_bytes(std::span(entries))));
  const std::vector<uint32_t> full(most_rows, kHistory);
  HEARTH_ASSIGN(const Buffer* lengths, add_data(bench, set, std::as_bytes(std::span(full))));
  const std::vector<uint32_t> none(most_rows, 0);
  HEARTH_ASSIGN(const Buffer* counts, add_data(bench, set, std::as_bytes(std::span(none))));
  HEARTH_ASSIGN(const Buffer* out,
                add_filled(bench, set, most_rows * (4 + kResultBytes + kTopBytes)));

  HEARTH_ASSIGN(const Buffer* mirostat, add_filled(bench, set, most_rows * 4));

  for (const uint32_t rows : {1u, 16u, 64u}) {
    if (rows > most_rows) continue;
    // Large enough for rows without stages and greedy rows as well.
    const uint64_t scratch_bytes =
        choose_sampling(caps, {.rows = rows, .vocab = vocab, .stages = true}).scratch_bytes();
    HEARTH_ASSIGN(const Buffer* scratch, add_filled(bench, set, scratch_bytes));
    for (const auto& [name, options, masked] : kOptions) {
      std::vector<params::SamplingRow> row_params;
      // A mask that allows every other token, and what rows with stages need.
      std::vector<uint32_t> words(divide_up(vocab, 32), 0x55555555);
      for (uint32_t r = 0; r < rows; ++r) {
        HEARTH_ASSIGN(
            params::SamplingRow row,
            make_sampling_row(options,
                              {.id_index = r, .counter = r, .history_slot = r, .append = false}));
        if (masked) use_mask(row, 0);
        if (has_stages(row)) add_stages(options, vocab, row, words);
        row_params.push_back(row);
      }
      HEARTH_ASSIGN(const Buffer* parameters,
                    add_data(bench, set, std::as_bytes(std::span(row_params))));
      HEARTH_ASSIGN(const Buffer* step_words,
                    add_data(bench, set, std::as_bytes(std::span(words))));
      const SamplingShape shape{.rows = rows,
                                .vocab = vocab,
                                .greedy = std::ranges::all_of(row_params, is_plainly_greedy),
                                .extras = std::ranges::any_of(row_params, has_extras),
                                .stages = std::ranges::any_of(row_params, has_stages)};
      const SamplingPlan plan = choose_sampling(caps, shape);
      const uint64_t row_bytes = uint64_t{vocab} * 4, batch_bytes = rows * row_bytes;
      const uint64_t batches = logits->bytes() / batch_bytes;
      set.cases.push_back(
          {.kernel = "sampling",
           .variant = fmt::format(
               "{} {}", name,
               variant_name(plan.stages.value_or(plan.pick.value_or(plan.scan)).pipeline)),
           .shape = fmt::format("{} x {}", rows, vocab),
           .cost = sampling_cost(shape),
           .record = [=, &bench](CommandRecorder& recorder, uint32_t repetition) {
             return record_sampling(
                 recorder, bench.pipelines(), plan,
                 {.logits = logits->slice(repetition % batches * batch_bytes, batch_bytes),
                  .rows = parameters->all(),
                  .biases = history->all(),
                  .history_lengths = lengths->all(),
                  .history = history->all(),
                  .scratch = scratch->all(),
                  .counts = counts->all(),
                  .ids = out->slice(0, rows * 4),
                  .results = out->slice(rows * 4, rows * kResultBytes),
                  .top = out->slice(rows * (4 + kResultBytes), rows * kTopBytes),
                  .words = step_words->all(),
                  .mirostat = mirostat->all(),
                  .mirostat_rows = mirostat->all(),
                  .shape = shape,
                  .history_capacity = kHistory});
           }});
    }
  }
  return set;
}

const KernelCases sampling_family{"sampling", sampling_cases};

}  // namespace
}  // namespace hearth
