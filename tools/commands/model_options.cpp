#include "tools/commands/model_options.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "engine/open_model_file.h"
#include "runtime/memory.h"
#include "tools/commands/common_options.h"
#include "tools/commands/rank_lists.h"
#include "tools/progress.h"

namespace hearth {
namespace {

constexpr uint32_t kMostSharedTokens = 1 << 24;  // 400 MB of tables

}  // namespace

void ModelOptionsGroup::declare_model(Options& options) {
  options.group("Model");
  add_model_option(options, &model);
}

void ModelOptionsGroup::declare(Options& options) {
  declare_model(options);
  add_device_option(options, &session.device);
  options
      .add("-c,--ctx N", &session.context,
           "Longest sequence in tokens; 0 is as long as model and memory allow")
      .alias("--ctx-size");
  options.add("--kv FORMAT", &kv, "Format of the KV cache").one_of({"f16", "q8_0"}).advanced();
  options
      .add("--kv-blocks N", &session.kv_blocks,
           "KV blocks of 16 tokens to allocate; 0 uses the free memory")
      .advanced();
  swap_ = &options
               .add("--swap SIZE", &session.swap_bytes,
                    "Host memory for swapping out preempted sequences; without it they are "
                    "recomputed")
               .bytes()
               .range(0, 0x1p50)
               .advanced();
  options
      .add("--deterministic", &session.deterministic,
           "Make results independent of what else is in the batch, to the last bit")
      .advanced();
  options
      .add("--special-in-messages", &session.special_in_messages,
           "Read control tokens in messages as control tokens; by default only the chat template's "
           "own text can hold them")
      .advanced();
}

void ModelOptionsGroup::declare_contrast(Options& options) {
  const Option& amateur =
      options
          .add("--amateur MODEL", &session.amateur,
               "Contrastive decoding: prefer tokens that the model finds more likely than this "
               "smaller one does; it must have the same vocabulary")
          .check(check_not_empty)
          .advanced();
  options
      .add("--cd-alpha A", &session.contrast.alpha,
           "With --amateur: keep only tokens at least A times as likely as the most likely one")
      .range(0, 1)
      .needs(amateur)
      .advanced();
  options
      .add("--cd-beta B", &session.contrast.beta,
           "With --amateur: how much of the smaller model's scores to subtract; 0 does nothing")
      .range(0, 100)
      .needs(amateur)
      .advanced();
}

void ModelOptionsGroup::declare_speculation(Options& options) {
  Option& speculate =
      options.add("--speculate METHOD", &speculate_,
                  "Guess tokens and verify several per step, for the same text sooner: ngram, "
                  "lookahead, draft, tree, auto or off");
  speculate.check([](const std::string& value) {
    SpeculationOptions read;
    return read_method(value, read).value_or("");
  });
  options
      .add("--draft-max N", &session.speculation.max_proposed,
           "Maximum tokens to guess per request and step")
      .range(1, kMaxProposed)
      .needs(speculate, {"ngram", "lookahead", "draft", "tree", "auto", "synthetic"})
      .default_text("8 for ngram and draft, 32 for others")
      .advanced();
  options
      .add("--ngram-shared TOKENS", &session.speculation.shared_tokens,
           "With --speculate ngram or auto: also guess from the last TOKENS tokens of other "
           "requests' answers (on a server, of those with the same API key); 0 is off")
      .range(0, kMostSharedTokens)
      .idle_at(0)
      .needs(speculate, {"ngram", "auto"})
      .advanced();
  options
      .add("--draft-model MODEL", &session.draft_model,
           "With --speculate draft, tree or auto: the model that guesses; it must have the same "
           "vocabulary")
      .alias("--model-draft")
      .check(check_not_empty)
      .needs(speculate, {"draft", "tree", "auto"})
      .advanced();
  options
      .add("--draft-min-p P", &session.speculation.draft_min_p,
           "End a draft before a token whose probability is below P")
      .range(0, 1)
      .needs(speculate, {"draft", "tree", "auto"})
      .advanced();
}

Result<std::unique_ptr<ModelFile>> ModelOptionsGroup::open_file() const {
  return open_model_file(model);
}

SessionOptions ModelOptionsGroup::session_options() const {
  SessionOptions options = session;
  options.kv = kv == "q8_0" ? KvFormat::kQ8_0 : KvFormat::kF16;
  read_method(speculate_, options.speculation);
  if (!policy_taken_) options.policy = before_switches(options.policy);
  read_ranks(devices_, layers_, options.ranks);
  if (split_ == "tensor") options.ranks.split = RankSplit::kTensor;
  if (split_ == "sequence") options.ranks.split = RankSplit::kSequence;
  if (options.ranks.devices.size() == 1) {
    options.device = options.ranks.devices.front();
    options.ranks.devices.clear();
  }
  return options;
}

bool ModelOptionsGroup::wants_swap() const {
  return swap_ != nullptr && swap_->given() && session.swap_bytes > 0;
}

Policy ModelOptionsGroup::before_switches(Policy policy) const {
  if (wants_swap()) policy.preemption = Preemption::kSwap;
  return policy;
}

void ModelOptionsGroup::take_policy(const Policy& policy) {
  session.policy = policy;
  policy_taken_ = true;
  if (policy.preemption == Preemption::kSwap && !swap_->given())
    session.swap_bytes = std::max(session.swap_bytes, kDefaultSwapBytes);
}

Result<std::unique_ptr<Session>> ModelOptionsGroup::open() const {
  HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, open_file());
  return open(std::move(file));
}

Result<std::unique_ptr<Session>> ModelOptionsGroup::open(std::unique_ptr<ModelFile> file) const {
  Progress progress("loading " + file->name(), ProgressOutput::standard_error(true));
  SessionOptions options = session_options();
  HEARTH_TRY(add_ranks(options));
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.update(done, total, format_bytes(total));
  };
  return Session::open(std::move(file), options);
}

void SamplingOptionsGroup::declare(Options& options) {
  options.group(
      fmt::format("Sampling (default: the model's own settings, else --temp {} --min-p {})",
                  kHearthSampling.temperature, kHearthSampling.min_p));
  // The same ranges as make_sampling_row. The options that exclude --temp take the most likely
  // tokens themselves, so 0 contradicts none.
  options.add("--temp T", &choices_.temperature, "Randomness; 0 always takes the most likely token")
      .alias("--temperature")
      .range(0, 1e6)
      .idle_at(0);
  options.add("--top-k K", &choices_.top_k, "Keep only the K most likely tokens; 0 keeps all");
  options
      .add("--top-p P", &choices_.top_p,
           "Keep only the most likely tokens that together have probability P")
      .range(0, 1);
  options
      .add("--min-p P", &choices_.min_p, "Drop tokens less likely than P times the most likely one")
      .range(0, 1);
  options
      .add("--repeat-penalty X", &choices_.repetition_penalty,
           "Divide the score of tokens that occurred before by X; 1 does nothing")
      .range(1e-3, 1e3)
      .advanced();
  options
      .add("--presence-penalty X", &choices_.presence_penalty,
           "Subtract X from the score of tokens generated before")
      .range(-1e3, 1e3)
      .advanced();
  options
      .add("--frequency-penalty X", &choices_.frequency_penalty,
           "Subtract X from a token's score for each time it was generated")
      .range(-1e3, 1e3)
      .advanced();
  declare_seed(options);
  options.add("--stop TEXT", &stop, "Stop before this text; may be given several times")
      .check(check_not_empty);
  options
      .add("--ban TEXT", &ban,
           "Keep this text out of the output, rewording what leads to it; may be given several "
           "times")
      .check(check_not_empty)
      .advanced();
  samplers_.declare(options);
}

void SamplingOptionsGroup::declare_seed(Options& options) {
  options.add("--seed N", &choices_.seed,
              "Seed of the random numbers; the same seed gives the same text");
}

SamplingChoices SamplingOptionsGroup::choices() const {
  SamplingChoices choices = choices_;
  choices.samplers = samplers_.choices();
  std::random_device device;
  if (!choices.seed) choices.seed = (uint64_t{device()} << 32) | device();
  return choices;
}

}  // namespace hearth
