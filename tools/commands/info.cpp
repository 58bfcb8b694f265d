// hearth info: what a model is and whether it fits the device, without loading it.
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>

#include "engine/scheduling/batch_plan.h"
#include "runtime/host/printable.h"
#include "runtime/log.h"
#include "runtime/memory.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_facts.h"
#include "tools/commands/model_options.h"
#include "tools/commands/rank_facts.h"
#include "tools/count_of.h"

namespace hearth {
namespace {

std::string vocabulary_text(const ModelFacts& facts) {
  switch (facts.vocabulary) {
    case VocabularyKind::kNone:
      return "none, token ids only";
    case VocabularyKind::kSentencePiece:
      return fmt::format("{} tokens, SentencePiece", facts.vocabulary_tokens);
    case VocabularyKind::kBytePair:
      return fmt::format("{} tokens, byte-level BPE ({})", facts.vocabulary_tokens,
                         printable(facts.pretokenizer));
  }
  return "none";
}

// "temperature 0.6, top-k 20 (set by the model)".
std::string sampling_text(const SamplingDefaults& sampling) {
  const SamplingOptions& options = sampling.options;
  const SamplingOptions off;
  std::string text =
      options.temperature == 0 ? "greedy" : fmt::format("temperature {}", options.temperature);
  if (options.top_k != off.top_k) text += fmt::format(", top-k {}", options.top_k);
  if (options.top_p != off.top_p) text += fmt::format(", top-p {}", options.top_p);
  if (options.min_p != off.min_p) text += fmt::format(", min-p {}", options.min_p);
  if (options.repetition_penalty != off.repetition_penalty)
    text += fmt::format(", repetition penalty {}", options.repetition_penalty);
  return text + (sampling.from_model.empty() ? " (Hearth's defaults)" : " (set by the model)");
}

// The float as it was written: 0.7, not 0.699999988.
double shortest(float value) { return std::stod(fmt::format("{}", value)); }

nlohmann::json to_json(const SamplingDefaults& sampling) {
  const SamplingOptions& options = sampling.options;
  return {{"temperature", shortest(options.temperature)},
          {"top_k", options.top_k},
          {"top_p", shortest(options.top_p)},
          {"min_p", shortest(options.min_p)},
          {"repetition_penalty", shortest(options.repetition_penalty)},
          {"from_model", sampling.from_model}};
}

// The memory for one sequence of the full context, weights and companion models included.
uint64_t needed_bytes(const MemoryPlan& memory) {
  const uint64_t companion_bytes_per_token = memory.companion_bytes_per_block / kTokensPerBlock;
  return memory.weight_bytes + memory.activation_bytes + memory.companion_bytes +
         memory.context * (memory.kv_bytes_per_token + companion_bytes_per_token);
}

nlohmann::json to_json(const ModelFacts::Companion& companion) {
  return {{"model", companion.name},
          {"weight_bytes", companion.weight_bytes},
          {"kv_bytes_per_token", companion.kv_bytes_per_token}};
}

nlohmann::json to_json(const ModelFacts& facts) {
  nlohmann::json formats = nlohmann::json::object();
  for (const auto& [name, use] : facts.formats)
    formats[name] = {
        {"tensors", use.tensors}, {"parameters", use.parameters}, {"bytes", use.bytes}};
  nlohmann::json json = {{"model", facts.name},
                         {"arch", facts.architecture},
                         {"tensors", facts.tensors},
                         {"formats", formats},
                         {"vocabulary", facts.vocabulary_tokens},
                         {"chat_template", facts.chat_template},
                         {"sampling", to_json(facts.sampling)},
                         {"parameters", 0},
                         {"weight_bytes", 0},
                         {"kv_bytes_per_token", nullptr},
                         {"context", nullptr},
                         {"activation_bytes", nullptr},
                         {"fits", nullptr},
                         {"max_context", nullptr},
                         {"device", nullptr}};
  if (facts.plan) {
    const ModelConfig& config = facts.plan->config;
    json["parameters"] = facts.plan->parameters;
    json["weight_bytes"] = facts.plan->weight_bytes;
    json["kv_bytes_per_token"] = facts.kv_bytes_per_token;
    json["context"] = config.context;
    json["layers"] = config.layers;
    json["width"] = config.width;
    json["heads"] = config.heads;
    json["kv_heads"] = config.kv_heads;
    json["head_size"] = config.head_size;
    json["mlp_width"] = config.mlp_width;
    json["vocabulary"] = config.vocabulary;
    if (config.experts > 0) {
      json["experts"] = config.experts;
      json["used_experts"] = config.used_experts;
    }
  }
  if (facts.draft) json["draft"] = to_json(*facts.draft);
  if (facts.amateur) json["amateur"] = to_json(*facts.amateur);
  if (facts.device)
    json["device"] = facts.device->name;
  else
    json["no_device"] = facts.no_device;
  if (facts.memory) {
    json["activation_bytes"] = facts.memory->activation_bytes;
    const uint32_t planned = facts.memory->context;
    json["fits"] = facts.memory->fits && facts.asked_context <= planned;
    json["max_context"] = facts.memory->max_context;
    json["asked_context"] = std::max(facts.asked_context, planned);
    json["planned_context"] = planned;
    json["needed_bytes"] = needed_bytes(*facts.memory);
    json["free_bytes"] = facts.memory->free_bytes;
    json["kv_blocks"] = facts.memory->kv_blocks;
  }
  return json;
}

void print_companion(const char* label, const ModelFacts::Companion& companion) {
  fmt::print("   {:<13} {}, {} of weights, {} of KV cache per token\n", label, companion.name,
             format_bytes(companion.weight_bytes), format_bytes(companion.kv_bytes_per_token));
}

void print_model(const ModelFacts& facts) {
  fmt::print("{}\n", facts.name);
  fmt::print("   architecture: {}\n", printable(facts.architecture));
  fmt::print("   vocabulary:   {}, {} chat template\n", vocabulary_text(facts),
             facts.chat_template ? "with a" : "without a");
  fmt::print("   sampling:     {}\n", sampling_text(facts.sampling));
  if (!facts.plan) {
    fmt::print("   tensors:      none{}\n",
               facts.vocabulary == VocabularyKind::kNone ? "" : "; the file is a vocabulary only");
    return;
  }
  const ModelConfig& config = facts.plan->config;
  const double millions = static_cast<double>(facts.plan->parameters) * 1e-6;
  fmt::print("   parameters:   {:.{}f} M in {} tensors\n", millions, millions < 1 ? 3 : 1,
             facts.tensors);
  for (const auto& [name, use] : facts.formats)
    fmt::print("     {:<8} {:>5} {}, {}\n", name, use.tensors,
               use.tensors == 1 ? "tensor" : "tensors", format_bytes(use.bytes));
  fmt::print("   shape:        {}, width {}, {} of {} ({}), MLP width {}\n",
             count_of(config.layers, "layer"), config.width, count_of(config.heads, "head"),
             config.head_size, count_of(config.kv_heads, "KV head"), config.mlp_width);
  if (config.experts > 0)
    fmt::print("   experts:      {} of {} per token\n", config.used_experts, config.experts);
  fmt::print("   context:      {} tokens\n", config.context);
  fmt::print("   weights:      {} on the device\n", format_bytes(facts.plan->weight_bytes));
  fmt::print("   KV cache:     {} per token\n", format_bytes(facts.kv_bytes_per_token));
  if (facts.draft) print_companion("draft model:", *facts.draft);
  if (facts.amateur) print_companion("amateur:", *facts.amateur);
}

void print_fit(const ModelFacts& facts, const SessionOptions& options) {
  if (!facts.device) {
    fmt::print("   device:       none: {}\n", printable(facts.no_device));
    return;
  }
  fmt::print("   device:       {}, {} free\n", printable(facts.device->name),
             format_bytes(facts.device->free_bytes()));
  if (!facts.memory) return;
  const MemoryPlan& memory = *facts.memory;
  fmt::print("   activations:  {} for steps of up to {} tokens and {} sequences\n",
             format_bytes(memory.activation_bytes), facts.limits.rows, facts.limits.sequences);
  fmt::print("   {} with a context of {} tokens, which needs {}\n",
             memory.fits ? "fits" : "does not fit", memory.context,
             format_bytes(needed_bytes(memory)));
  if (const std::string notice = context_notice(facts.asked_context, facts.plan->config.context);
      !notice.empty())
    fmt::print("   {}\n", notice);
  if (const std::string notice = pool_notice(options, memory); !notice.empty())
    fmt::print("   {}\n", notice);
  fmt::print("   longest context that fits: {} tokens\n", memory.max_context);
}

class InfoCommand : public Command {
 public:
  InfoCommand()
      : Command(CommandGroup::kFiles, "info",
                "Describe a model and say whether it fits the device") {}

  void declare(Options& options) override {
    options.example("hearth info -m model.gguf --ctx 8192");
    model_.declare(options);
    model_.declare_ranks(options);
    model_.declare_speculation(options);
    model_.declare_contrast(options);
    options.add("--max-seqs N", &model_.session.max_sequences, "Maximum sequences in a batch")
        .range(1, 65536);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Maximum tokens per step; 0 picks what suits the device")
        .range(0, 1u << 20)
        .advanced();
    options.group("Output");
    add_json_option(options, &json_);
  }

  Status run() override {
    HEARTH_ASSIGN(const auto file, model_.open_file());
    HEARTH_ASSIGN(const ModelFacts facts, model_facts(*file, model_.session_options()));
    if (!facts.sampling.ignored.empty())
      log_line(fmt::format("{}: default sampling settings ignored: {}", facts.name,
                           facts.sampling.ignored));
    std::vector<RankFacts> ranks;
    std::vector<RankStepTime> steps;
    if (const SessionOptions options = model_.session_options();
        facts.plan && options.ranks.several()) {
      HEARTH_ASSIGN(ranks, rank_facts(*file, options));
      constexpr uint32_t kPredictedTokens = 512;
      const uint32_t tokens = std::min(kPredictedTokens, facts.plan->config.context - 1);
      for (const uint32_t sequences : {1u, 8u, 64u}) {
        HEARTH_ASSIGN(steps.emplace_back(),
                      rank_step_time(*file, options.kv, ranks, sequences, tokens));
      }
    }
    if (json_) {
      nlohmann::json json = to_json(facts);
      if (!ranks.empty()) {
        json["ranks"] = to_json(ranks);
        json["decode_steps"] = to_json(steps);
      }
      fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
      return {};
    }
    print_model(facts);
    if (ranks.empty())
      print_fit(facts, model_.session_options());
    else
      print_ranks(ranks, steps);
    return {};
  }

 private:
  ModelOptionsGroup model_;
  bool json_ = false;
};

InfoCommand info_command;

}  // namespace
}  // namespace hearth
