// The options of every command that runs a model, and opening the model with them.
#pragma once

#include <memory>
#include <string>

#include "engine/session.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"
#include "tools/commands/sampler_options.h"
#include "tools/options/options.h"
#include "tools/sampling_choices.h"

namespace hearth {

struct ModelOptionsGroup {
  std::string model;  // as open_model_file() takes it; empty: the built-in one
  SessionOptions session;
  std::string kv = "f16";

  // -m, --model.
  void declare_model(Options& options);
  // -m, -d, --ctx, --kv, --kv-blocks, --swap, --deterministic, --special-in-messages.
  void declare(Options& options);
  // --devices, --split, --layers, --divide-rows; mpirun may start the command, too.
  void declare_ranks(Options& options);
  // --amateur, --cd-alpha, --cd-beta.
  void declare_contrast(Options& options);
  // --speculate, --draft-max, --ngram-shared, --draft-model, --draft-min-p.
  void declare_speculation(Options& options);

  Result<std::unique_ptr<ModelFile>> open_file() const;
  // As given on the command line. With --swap, preempted sequences are swapped out unless the
  // command has called take_policy().
  SessionOptions session_options() const;
  bool wants_swap() const;  // --swap was given, and is not 0
  // For commands with --policy. before_switches() is the named policy as --swap changes it;
  // take_policy() sets the final one, and reserves host memory if it swaps and --swap gave none.
  Policy before_switches(Policy policy) const;
  void take_policy(const Policy& policy);
  // Loads the model, with a progress bar on stderr if that is a terminal.
  Result<std::unique_ptr<Session>> open() const;
  // Whether mpirun started this process as another rank than 0. Such a process only calls
  // run_rank(), which returns when rank 0 ends.
  bool is_other_rank() const;
  Status run_rank() const;
  Result<std::unique_ptr<Session>> open(std::unique_ptr<ModelFile> file) const;

 private:
  // Connects to the ranks of other processes, if there are any.
  Status add_ranks(SessionOptions& options) const;

  const Option* swap_ = nullptr;
  std::string speculate_ = "off";
  bool may_have_ranks_ = false;
  std::string devices_, layers_, split_ = "layers", divided_rows_ = "auto";
  bool policy_taken_ = false;
};

struct SamplingOptionsGroup {
  std::vector<std::string> stop, ban;

  // --temp --top-k --top-p --min-p --repeat-penalty --presence-penalty --frequency-penalty --seed
  // --stop --ban, and the samplers that --help-all shows.
  void declare(Options& options);
  void declare_seed(Options& options);
  // What was given, to be applied over the model's defaults; without --seed, a random one.
  SamplingChoices choices() const;

 private:
  SamplingChoices choices_;
  SamplerOptionsGroup samplers_;
};

}  // namespace hearth
