#include "tools/commands/model_options.h"

#include <cstdio>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/open_model_file.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

// One line that rewrites itself while a model loads.
class ProgressBar {
 public:
  ~ProgressBar() {
    if (shown_ >= 0) fmt::print(stderr, "\r\033[K");
  }
  void show(uint64_t done, uint64_t total) {
    constexpr int kWidth = 40;
    const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
    if (percent == shown_) return;
    shown_ = percent;
    const int filled = percent * kWidth / 100;
    fmt::print(stderr, "\rloading [{:=<{}}{: <{}}] {:3} % of {}", "", filled, "", kWidth - filled,
               percent, format_bytes(total));
    std::fflush(stderr);
  }

 private:
  int shown_ = -1;
};

}  // namespace

void ModelOptionsGroup::declare_model(CLI::App& app) {
  app.add_option("-m,--model", model,
                 "A .gguf file or a Hugging Face folder; without it, the embedded model");
}

void ModelOptionsGroup::declare(CLI::App& app) {
  declare_model(app);
  app.add_option("-d,--device", session.device, "The device: an index or part of a name");
  app.add_option("-c,--ctx", session.context, "Tokens a sequence may have; 0: as many as possible");
  app.add_option("--kv", kv, "Format of the KV cache")->check(CLI::IsMember({"f16", "q8_0"}));
  app.add_option("--kv-blocks", session.kv_blocks, "Blocks of 16 tokens in the KV cache");
  swap_ = app.add_option("--swap", session.swap_bytes,
                         "Swap sequences out where blocks run short, into this much host memory, "
                         "as 512MB; otherwise they are computed again")
              ->transform(CLI::AsSizeValue(false))
              ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 50));
  app.add_flag("--deterministic", session.deterministic,
               "The same tokens whatever else is in the batch");
}

Result<std::unique_ptr<ModelFile>> ModelOptionsGroup::open_file() const {
  return open_model_file(model);
}

SessionOptions ModelOptionsGroup::session_options() const {
  SessionOptions options = session;
  options.kv = kv == "q8_0" ? KvFormat::kQ8_0 : KvFormat::kF16;
  if (!policy_taken_) options.policy = before_switches(options.policy);
  return options;
}

bool ModelOptionsGroup::wants_swap() const {
  return swap_ != nullptr && swap_->count() > 0 && session.swap_bytes > 0;
}

Policy ModelOptionsGroup::before_switches(Policy policy) const {
  if (wants_swap()) policy.preemption = Preemption::kSwap;
  return policy;
}

void ModelOptionsGroup::take_policy(const Policy& policy) {
  session.policy = policy;
  policy_taken_ = true;
  if (policy.preemption == Preemption::kSwap && swap_->count() == 0)
    session.swap_bytes = std::max(session.swap_bytes, kUsualSwapBytes);
}

Result<std::unique_ptr<Session>> ModelOptionsGroup::open() const {
  HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, open_file());
  return open(std::move(file));
}

Result<std::unique_ptr<Session>> ModelOptionsGroup::open(std::unique_ptr<ModelFile> file) const {
  ProgressBar bar;
  SessionOptions options = session_options();
  if (isatty(STDERR_FILENO) != 0)
    options.progress = [&](uint64_t done, uint64_t total) { bar.show(done, total); };
  return Session::open(std::move(file), options);
}

void SamplingOptionsGroup::declare(CLI::App& app) {
  const CLI::Range share(0.0f, 1.0f), penalty(-1e3f, 1e3f);  // as make_sampling_row has them
  app.add_option("--temp", options.temperature, "Temperature; 0 takes the likeliest token")
      ->check(CLI::Range(0.0f, 1e6f))
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "Only the k likeliest tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", options.top_p, "Only the likeliest tokens that make up this share")
      ->check(share)
      ->capture_default_str();
  app.add_option("--min-p", options.min_p, "Only tokens this likely beside the likeliest")
      ->check(share)
      ->capture_default_str();
  app.add_option("--repeat-penalty", options.repetition_penalty, "On tokens that were there before")
      ->check(CLI::Range(1e-3f, 1e3f))
      ->capture_default_str();
  app.add_option("--presence-penalty", options.presence_penalty, "On tokens generated before")
      ->check(penalty)
      ->capture_default_str();
  app.add_option("--frequency-penalty", options.frequency_penalty,
                 "On tokens generated before, for each time")
      ->check(penalty)
      ->capture_default_str();
  declare_seed(app);
  app.add_option("--stop", stop, "Ends the text where this string begins; may be given again")
      ->allow_extra_args(false);
}

void SamplingOptionsGroup::declare_seed(CLI::App& app) {
  seed_ = app.add_option("--seed", options.seed, "The same seed gives the same text");
}

void SamplingOptionsGroup::settle_seed() {
  if (seed_ != nullptr && seed_->count() > 0) return;
  std::random_device device;
  options.seed = (uint64_t{device()} << 32) | device();
}

}  // namespace hearth
