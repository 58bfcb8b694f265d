// hearth bench: how fast a model runs here, where the time of its steps goes (--profile), and how
// fast each kernel is (--kernels), compared with the device's measured ceilings; which kernels a
// step runs, here or elsewhere (--explain).
#include <algorithm>

#include <fmt/format.h>

#include "engine/program/device_profiles.h"
#include "engine/ranks/mpi_link.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/device.h"
#include "runtime/device_check.h"
#include "runtime/instance.h"
#include "runtime/pipeline_cache.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/constrained_bench.h"
#include "tools/bench/contrast_bench.h"
#include "tools/bench/explain.h"
#include "tools/bench/link_bench.h"
#include "tools/bench/model_bench.h"
#include "tools/bench/rank_bench.h"
#include "tools/bench/search_bench.h"
#include "tools/bench/session_tests.h"
#include "tools/bench/time_kernels.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

constexpr uint32_t kMostTokens = 4000;  // the engine keeps records of its last 4096 steps
constexpr uint32_t kMostContext = 1u << 24;

// Options that replace the usual tests, or add one. Only one of them may be given.
constexpr const char* kTests[] = {"--beams",   "--penalty-alpha", "--amateur",
                                  "--kernels", "--profile",       "--explain",
                                  "--link",    "--json-schema",   "--speculate"};

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command(CommandGroup::kMeasure, "bench", "Measure how fast a model and its kernels run") {}

  void declare(Options& options) override {
    options.example("hearth bench -m model.gguf");
    options.example("hearth bench -p 512 -n 128 --batch 1,8,64");
    options.example("hearth bench --speculate synthetic:0.7 --batch 1,8,32");
    options.example("hearth bench --devices 0,1 --batch 8,64");
    options.group("Test");
    prompt_ = &options
                   .add("-p,--prompt N", &bench_.prompt,
                        "Length of the prompt to time, in tokens; 0 skips the prompt test")
                   .range(0, kMostContext);
    options
        .add("-n,--tokens N", &bench_.tokens,
             "Tokens to generate per sequence; 0 skips the decode tests")
        .range(0, kMostTokens);
    options.add("--batch LIST", &bench_.batches, "Batch sizes to time decoding at")
        .separator(',')
        .range(1, 65536);
    options
        .add("--context N", &bench_.context, "Tokens each sequence already has when timing starts")
        .range(0, kMostContext);
    options.add("--reps N", &bench_.repetitions, "Repetitions of each test").range(1, 1000);
    options
        .add("--beams N", &beams_,
             "Instead of the other tests, compare beam search with N beams with N independent "
             "streams")
        .range(2, kMaxBeams)
        .advanced();
    const Option& search =
        options
            .add("--penalty-alpha A", &search_.alpha,
                 "Instead of the other tests, compare contrastive search with sampling")
            .range(0, 1)
            .advanced();
    options.add("--top-k K", &search_.top_k, "With --penalty-alpha: candidates per token")
        .range(2, kMaxTopLogprobs)
        .needs(search)
        .advanced();
    const Option& kernels =
        options.add("--kernels", &kernels_, "Time every kernel on its own instead of a model");
    options.add("--filter TEXT", &filter_, "Only kernel families whose name contains TEXT")
        .needs(kernels);
    options.add("--profile", &profile_, "Show how long the kernels of a step take instead of tokens/s");
    const Option& explain =
        options.add("--explain", &explain_,
                    "Show which kernels each step would run instead of timing; loads no weights");
    options
        .add("--device-profile NAME", &device_profile_,
             "With --explain: the device to plan for, if it is not this machine's: h200, rtx-4090, "
             "rdna3, rdna2, arc, apple or llvmpipe")
        .needs(explain);
    options
        .add("--link", &link_,
             "Time the link between two ranks instead, and say whether dividing the model pays; "
             "also under mpirun. With --devices, also what passing a step between ranks costs")
        .advanced();
    options
        .add("--json-schema FILE", &schema_,
             "Also time decoding with this JSON schema against decoding without it")
        .check(check_file_name);
    model_.declare_speculation(options);
    model_.declare_contrast(options);
    options.at("--amateur")
        .help(
            "Instead of the other tests, compare contrastive decoding with this smaller model "
            "with decoding by each of the two alone");
    for (const char* test : kTests)
      for (const char* other : kTests)
        if (test != other) options.at(test).excludes(options.at(other));
    options.group("Output");
    add_json_option(options, &json_);
    model_.declare(options);
    model_.declare_ranks(options);
    options
        .add("--max-step-tokens N", &model_.session.max_step_tokens,
             "Maximum tokens per step; 0 picks what suits the device")
        .alias("--step-tokens")
        .range(0, 1u << 20)
        .advanced();
  }

  Status run() override {
    const bool several = model_.session_options().ranks.several();
    if (link_ && !several) return run_link();
    if (several || started_by_mpirun()) return run_ranks();
    BenchReport report(json_);
    if (kernels_) return time_kernels(model_.session.device, filter_, report);
    if (explain_) return explain_model(report);
    return model_.session.amateur.empty() ? run_model(report) : compare_contrast(report);
  }

 private:
  Status run_link() const {
    HEARTH_ASSIGN(const auto file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    return bench_link(plan.config, json_);
  }

  bool speculates() const {
    return model_.session_options().speculation.method != SpeculationMethod::kNone;
  }

  bool times_other_things() const {
    return kernels_ || profile_ || explain_ || beams_ > 0 || search_.searches() ||
           !model_.session.amateur.empty() || !schema_.empty() || speculates();
  }

  // The prompt and decode tests that suit the model. The default prompt is too long for some.
  void fit_tests(const ModelPlan& plan) {
    if (!prompt_->given()) bench_.prompt = std::min(bench_.prompt, plan.config.context - 1);
    if (bench_.tokens == 0) bench_.batches.clear();
  }

  Status check_tests() const {
    if (bench_.prompt > 0 || !bench_.batches.empty()) return {};
    return Error{ErrorKind::kInvalid, "nothing to time: -p and -n are both 0"};
  }

  Status run_ranks() {
    if (times_other_things())
      return unsupported("on several ranks, hearth bench times only prompts and decoding");
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    fit_tests(plan);
    HEARTH_TRY(check_tests());
    model_.session.max_sequences = 1;
    model_.session = bench_session_options(model_.session, bench_);
    if (model_.is_other_rank()) return model_.run_rank();
    if (link_ && !json_) HEARTH_TRY(bench_link(plan.config, json_));

    BenchReport report(json_);
    Progress progress = report.progress();
    const auto on_run = [&](const std::string& what, uint32_t run, uint32_t runs) {
      progress.update(run, runs, fmt::format("{}, run {} of {}", what, run + 1, runs));
    };
    std::vector<ModelTime> alone;
    if (!link_ && !started_by_mpirun()) {
      HEARTH_ASSIGN(alone, time_alone(on_run));
    }
    HEARTH_ASSIGN(const auto session, model_.open(std::move(file)));
    HEARTH_TRY(check_room(*session));
    HEARTH_ASSIGN(std::vector<RankBenchTime> times, bench_ranks(*session, bench_, on_run));
    progress.clear();
    const std::string& divided_rows = session->ranks()->divided_rows_text();
    if (!json_) {
      for (const std::string& line : session->ranks()->describe()) fmt::print("{}\n", line);
      if (!divided_rows.empty()) fmt::print("{}\n", divided_rows);
      print_ranks_header();
    }
    for (size_t i = 0; i < times.size(); ++i) {
      if (i < alone.size()) times[i].alone = alone[i];
      report.add(times[i]);
    }
    if (!json_ && session->options().ranks.split == RankSplit::kLayers)
      fmt::print("{}\n", describe_rows(times));
    report.set("model", session->file().name());
    report.set("ranks", session->ranks()->describe());
    report.set("divided_rows", divided_rows);
    report.end("results");
    return {};
  }

  // The same tests on the first device alone; nothing if the model does not fit there.
  Result<std::vector<ModelTime>> time_alone(const RankBenchRun& on_run) const {
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    SessionOptions options = model_.session_options();
    options.device = options.ranks.devices.front();
    options.ranks = {};
    const auto session = Session::open(std::move(file), options);
    if (!session.ok() && session.error().kind == ErrorKind::kOutOfMemory)
      return std::vector<ModelTime>();
    if (!session.ok()) return session.error();
    return bench_alone(**session, bench_, on_run);
  }

  // Of the device that --device-profile names, or of this machine's.
  Result<DeviceCaps> explained_device() const {
    if (!device_profile_.empty()) return find_device_profile(device_profile_);
    HEARTH_ASSIGN(const auto instance, Instance::create({}));
    HEARTH_ASSIGN(const auto device, Device::open(*instance, model_.session.device));
    HEARTH_ASSIGN(const auto pipelines,
                  PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
    HEARTH_TRY(check_device(*device, *pipelines));
    return device->caps();
  }

  Status explain_model(BenchReport& report) {
    HEARTH_ASSIGN(const std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    fit_tests(plan);
    HEARTH_ASSIGN(const DeviceCaps caps, explained_device());
    model_.session.max_sequences = 1;
    HEARTH_ASSIGN(
        const auto steps,
        explain_steps(caps, plan, bench_session_options(model_.session_options(), bench_), bench_));
    if (!json_) fmt::print("{} on {}\n\n", file->name(), caps.name);
    for (const StepExplanation& step : steps) report.add(step);
    report.set("device", caps.name);
    report.set("model", file->name());
    report.end("steps");
    return {};
  }

  Status run_model(BenchReport& report) {
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    fit_tests(plan);
    HEARTH_TRY(choose_tests());
    model_.session.max_sequences = 1;
    model_.session = bench_session_options(model_.session, bench_);
    if (search_.searches())
      model_.session = search_session_options(model_.session, bench_, search_);
    HEARTH_ASSIGN(const auto session, model_.open(std::move(file)));
    HEARTH_TRY(check_room(*session));
    const DeviceCaps& caps = session->device().caps();
    report.set("device", caps.name);
    report.set("model", session->file().name());
    SessionTests tests(*session, bench_, report);
    if (beams_ > 0) {
      HEARTH_TRY(tests.compare_beams(beams_));
      report.end();
      return {};
    }
    KernelBench kernel_bench(session->device(), session->pipelines());
    HEARTH_ASSIGN(const Ceilings ceilings, report.measure_ceilings(kernel_bench, caps));
    HEARTH_TRY(run_tests(tests, ceilings));
    report.end(profile_ ? "profiles" : "results");
    return {};
  }

  Status compare_contrast(BenchReport& report) {
    if (bench_.tokens == 0) return invalid("--amateur compares decoding, so -n must not be 0");
    if (model_.session.contrast.beta == 0)
      return invalid("with --cd-beta 0 there is nothing to compare: the amateur has no effect");
    bench_.prompt = 0;
    model_.session.max_sequences = 1;
    model_.session = bench_session_options(model_.session, bench_);
    const std::string amateur = model_.session.amateur;
    HEARTH_ASSIGN(const auto together, time_alone_or_with(model_.model, amateur, report));
    HEARTH_ASSIGN(const auto of_expert, time_alone_or_with(model_.model, "", report));
    HEARTH_ASSIGN(const auto of_amateur, time_alone_or_with(amateur, "", report));
    report.set("amateur", amateur);
    if (!json_) print_contrast_header();
    for (size_t i = 0; i < together.size(); ++i)
      report.add(ContrastTime{.batch = bench_.batches[i],
                              .expert = of_expert[i],
                              .amateur = of_amateur[i],
                              .contrastive = together[i]});
    report.end("results");
    return {};
  }

  // In a session of its own.
  Result<std::vector<DecodeWindow>> time_alone_or_with(const std::string& model,
                                                       const std::string& amateur,
                                                       BenchReport& report) const {
    ModelOptionsGroup options = model_;
    options.model = model;
    options.session.amateur = amateur;
    HEARTH_ASSIGN(const auto session, options.open());
    HEARTH_TRY(check_room(*session));
    if (!amateur.empty()) {
      report.set("device", session->device().caps().name);
      report.set("model", session->file().name());
    }
    Progress progress = report.progress();
    return time_streams(*session, bench_, [&](uint32_t run, uint32_t runs) {
      progress.update(run, runs,
                      session->file().name() + (amateur.empty() ? "" : " with its amateur"));
    });
  }

  // Drops the prompt and decode tests that are not to be run, because others replace them.
  Status choose_tests() {
    if (beams_ > 0) {
      bench_.prompt = 0;
      bench_.batches = {beams_};
    }
    if (!schema_.empty()) {
      HEARTH_ASSIGN(const std::string schema, read_text_file(schema_));
      auto grammar = compile_endless(schema);
      if (!grammar.ok()) return invalid(fmt::format("{}: {}", schema_, grammar.error().message));
      grammar_ = *grammar;
    }
    if (speculates()) bench_.prompt = 0;
    HEARTH_TRY(check_tests());
    if (search_.searches()) bench_.prompt = 0;
    return {};
  }

  Status run_tests(SessionTests& tests, const Ceilings& ceilings) const {
    if (profile_) return tests.profile_steps(ceilings);
    if (search_.searches()) return tests.time_searches(search_);
    if (speculates()) return tests.time_speculation();
    HEARTH_TRY(tests.time_model(ceilings));
    return grammar_ != nullptr ? tests.time_grammar(grammar_) : Status{};
  }

  Status check_room(const Session& session) const {
    const MemoryPlan& memory = session.memory();
    if (memory.context < model_.session.context)
      return Error{ErrorKind::kInvalid,
                   fmt::format("these tests need sequences of {} tokens, but {} takes at most {}: "
                               "give smaller -p, -n or --context",
                               model_.session.context, session.file().name(), memory.context)};
    if (memory.kv_blocks < model_.session.kv_blocks)
      return Error{ErrorKind::kOutOfMemory,
                   fmt::format("{} tokens do not fit into the KV cache, which has room for {}: "
                               "give smaller --batch, -n or --context",
                               uint64_t{model_.session.kv_blocks} * kTokensPerBlock,
                               uint64_t{memory.kv_blocks} * kTokensPerBlock)};
    return {};
  }

  ModelOptionsGroup model_;
  ModelBenchOptions bench_;
  const Option* prompt_ = nullptr;
  uint32_t beams_ = 0;
  ContrastiveSearchOptions search_{.top_k = 4};
  bool kernels_ = false, profile_ = false, explain_ = false, json_ = false;
  bool link_ = false;
  std::string filter_, schema_, device_profile_;
  std::shared_ptr<const grammar::Grammar> grammar_;
};

BenchCommand bench_command;

}  // namespace
}  // namespace hearth
