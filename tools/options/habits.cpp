#include "tools/options/habits.h"

#include <algorithm>
#include <initializer_list>
#include <span>

namespace hearth {
namespace {

struct Habit {
  std::initializer_list<std::string_view> words;
  std::string_view hint;
};

const Habit kOptions[] = {
    {{"-ngl", "--n-gpu-layers", "--gpu-layers", "-mg", "--main-gpu", "-sm", "--split-mode", "-ts",
      "--tensor-split", "--tensor-parallel-size", "-tp"},
     "Hearth runs the whole model on one device; choose it with -d (see hearth devices), or "
     "several "
     "with --devices"},
    {{"-t", "--threads", "-tb", "--threads-batch"},
     "there are no threads to set: Hearth computes on the GPU, or on all cores if there is none"},
    {{"-np", "--parallel", "--max-num-seqs"},
     "hearth serve runs many requests in one batch; --max-seqs N sets how many"},
    {{"-cb", "--cont-batching"}, "continuous batching is always on"},
    {{"-fa", "--flash-attn"}, "attention is always fused, so there is nothing to turn on"},
    {{"-b", "--batch-size", "-ub", "--ubatch-size", "--max-num-batched-tokens"},
     "Hearth picks the tokens per step for the device; hearth serve --max-step-tokens N limits "
     "them"},
    {{"--mlock", "--no-mmap", "--mmap"},
     "weights are copied to the device once, so this makes no difference"},
    {{"-ctk", "-ctv", "--cache-type-k", "--cache-type-v", "--kv-cache-dtype"},
     "--kv q8_0 halves the KV cache"},
    {{"-nkvo", "--no-kv-offload"}, "the KV cache is always on the device; --swap SIZE extends it"},
    {{"-n-predict", "--n-predict", "--predict", "--num-predict", "--max-tokens"},
     "use -n N for the maximum tokens to generate"},
    {{"--ctx-size", "--n-ctx", "--num-ctx", "--max-model-len"},
     "use -c N for the longest sequence"},
    {{"-s"}, "use --seed N"},
    {{"-i", "--interactive", "-cnv", "--conversation"}, "use hearth chat for a conversation"},
    {{"-hf", "-hfr", "--hf-repo", "-mu", "--model-url"},
     "Hearth does not download models; give a .gguf file or a Hugging Face folder with -m"},
    {{"-sys", "--system-prompt"}, "use --system TEXT"},
    {{"--jinja", "--chat-template"}, "hearth chat always uses the model's own chat template"},
    {{"--alias", "--served-model-name"}, "use hearth serve --name NAME"},
    {{"--verbose"}, "hearth run prints its speed when it ends, and hearth bench measures it"},
    {{"--list-devices"}, "hearth devices lists the devices"},
    {{"--dtype", "--quantization"},
     "Hearth runs the weights as they are in the file; hearth quantize converts them"},
    {{"--gpu-memory-utilization"}, "--kv-blocks N limits the memory for the KV cache"},
};

const Habit kCommands[] = {
    {{"pull", "download"},
     "Hearth does not download models yet: put a .gguf file into the models folder, which hearth "
     "list names"},
    {{"ls", "models"}, "hearth list shows the models"},
    {{"ps", "stop"}, "a model is loaded only while its command runs"},
    {{"rm", "cp", "push", "create"}, "models are plain files; hearth list shows where they are"},
    {{"show"}, "hearth info shows a model"},
    {{"server", "api"}, "use hearth serve"},
    {{"cli", "generate", "complete", "completion"}, "hearth run completes a prompt"},
    {{"gui", "ui", "window"}, "use hearth dash"},
    {{"ppl"}, "hearth perplexity measures a model on a text"},
};

std::optional<std::string_view> hint_for(std::string_view word, std::span<const Habit> habits) {
  for (const Habit& habit : habits)
    if (std::ranges::find(habit.words, word) != habit.words.end()) return habit.hint;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> foreign_option_hint(std::string_view option) {
  return hint_for(option.substr(0, option.find('=')), kOptions);
}

std::optional<std::string_view> foreign_command_hint(std::string_view command) {
  return hint_for(command, kCommands);
}

}  // namespace hearth
