// hearth bench: how fast a model runs here, where the time of its steps goes (--profile), and how
// fast each kernel is (--kernels), compared with the device's measured ceilings; which kernels a
// step runs, here or elsewhere (--explain).
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/program/device_profiles.h"
#include "engine/ranks/mpi_link.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/chain_check.h"
#include "runtime/device.h"
#include "runtime/fragment_check.h"
#include "runtime/instance.h"
#include "runtime/pipeline_cache.h"
#include "tools/bench/beam_bench.h"
#include "tools/bench/constrained_bench.h"
#include "tools/bench/explain.h"
#include "tools/bench/kernel_bench.h"
#include "tools/bench/kernel_cases.h"
#include "tools/bench/link_bench.h"
#include "tools/bench/model_bench.h"
#include "tools/bench/rank_bench.h"
#include "tools/bench/reports.h"
#include "tools/bench/search_bench.h"
#include "tools/bench/speculation_bench.h"
#include "tools/bench/step_profile.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/commands/model_options.h"
#include "tools/progress.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

constexpr uint32_t kMostTokens = 4000;  // the engine keeps records of its last 4096 steps
constexpr uint32_t kMostContext = 1u << 24;

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
    Option& kernels =
        options.add("--kernels", &kernels_, "Time every kernel on its own instead of a model");
    options.add("--filter TEXT", &filter_, "Only kernel families whose name contains TEXT")
        .needs(kernels);
    options.add("--profile", &profile_, "Show where the time of a step goes instead of tokens/s")
        .excludes(kernels);
    Option& explain =
        options
            .add("--explain", &explain_,
                 "Show which kernels each step would run instead of timing; loads no weights")
            .excludes(kernels);
    options
        .add("--device-profile NAME", &device_profile_,
             "With --explain: the device to plan for, if it is not this machine's: h200, rtx-4090, "
             "rdna3, rdna2, arc, apple or llvmpipe")
        .needs(explain);
    options
        .add("--link", &link_,
             "Time the link between two ranks instead, and say whether dividing the model pays; "
             "also under mpirun. With --devices, also what passing a step between ranks costs")
        .excludes(kernels)
        .advanced();
    options
        .add("--json-schema FILE", &schema_,
             "Also time decoding with this JSON schema against decoding without it")
        .check(check_file_name)
        .excludes(kernels);
    model_.declare_speculation(options);
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
    return kernels_ ? run_kernels() : explain_ ? explain_model() : run_model();
  }

 private:
  bool wants(const KernelCases& family) const {
    return family.family().find(filter_) != std::string::npos;
  }

  Status run_link() const {
    HEARTH_ASSIGN(const auto file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    return bench_link(plan.config, json_);
  }

  bool times_other_things() const {
    return kernels_ || profile_ || explain_ || beams_ > 0 || search_.searches() ||
           !schema_.empty() ||
           model_.session_options().speculation.method != SpeculationMethod::kNone;
  }

  Status run_ranks() {
    if (times_other_things())
      return unsupported("on several ranks, hearth bench times only prompts and decoding");
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    if (!prompt_->given()) bench_.prompt = std::min(bench_.prompt, plan.config.context - 1);
    if (bench_.tokens == 0) bench_.batches.clear();
    if (bench_.prompt == 0 && bench_.batches.empty())
      return Error{ErrorKind::kInvalid, "nothing to time: -p and -n are both 0"};
    model_.session.max_sequences = 1;
    model_.session = bench_session_options(model_.session, bench_);
    if (model_.is_other_rank()) return model_.run_rank();
    if (link_ && !json_) HEARTH_TRY(bench_link(plan.config, json_));

    Progress progress("timing", ProgressOutput::standard_error(json_));
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
    nlohmann::json list = nlohmann::json::array();
    if (!json_) {
      for (const std::string& line : session->ranks()->describe()) fmt::print("{}\n", line);
      if (!divided_rows.empty()) fmt::print("{}\n", divided_rows);
      print_ranks_header();
    }
    for (size_t i = 0; i < times.size(); ++i) {
      if (i < alone.size()) times[i].alone = alone[i];
      if (!json_) print(times[i]);
      list.push_back(to_json(times[i]));
    }
    if (!json_ && session->options().ranks.split == RankSplit::kLayers)
      fmt::print("{}\n", describe_rows(times));
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"model", session->file().name()},
                                        {"ranks", session->ranks()->describe()},
                                        {"divided_rows", divided_rows},
                                        {"results", list}}
                             .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
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

  Status run_kernels() {
    if (std::ranges::none_of(KernelCases::all(), [&](const auto* each) { return wants(*each); }))
      return Error{ErrorKind::kInvalid,
                   fmt::format("no kernel family has '{}' in its name", filter_)};
    HEARTH_ASSIGN(const auto instance, Instance::create({}));
    HEARTH_ASSIGN(const auto device, Device::open(*instance, model_.session.device));
    HEARTH_ASSIGN(const auto pipelines,
                  PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
    HEARTH_TRY(check_chain(*device, *pipelines));
    HEARTH_TRY(check_fragments(*device, *pipelines));
    KernelBench bench(*device, *pipelines);
    HEARTH_ASSIGN(const Ceilings ceilings, measure_ceilings(bench));
    if (!json_) {
      print_ceilings(device->caps(), ceilings);
      print_kernel_header();
    }
    nlohmann::json list = nlohmann::json::array();
    std::vector<const KernelCases*> families;
    std::ranges::copy_if(KernelCases::all(), std::back_inserter(families),
                         [&](const auto* family) { return wants(*family); });
    Progress progress("timing kernels", ProgressOutput::standard_error(json_));
    for (size_t i = 0; i < families.size(); ++i) {
      HEARTH_ASSIGN(const KernelCaseSet set, families[i]->make(bench));
      const size_t cases = set.cases.size();
      for (size_t k = 0; k < cases; ++k) {
        // Every family counts the same: how many cases the next ones have is not known yet.
        progress.update(i * cases + k, families.size() * cases,
                        fmt::format("{} {}", set.cases[k].kernel, set.cases[k].shape));
        HEARTH_ASSIGN(const KernelTime time, bench.measure(set.cases[k], ceilings));
        progress.clear();
        if (!json_) print(time);
        list.push_back(to_json(time));
      }
    }
    progress.clear();
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"device", device->caps().name},
                                        {"driver", device->caps().driver},
                                        {"ceilings", to_json(ceilings)},
                                        {"kernels", list}}
                             .dump(2));
    return {};
  }

  // Of the device that --device-profile names, or of this machine's.
  Result<DeviceCaps> explained_device() const {
    if (!device_profile_.empty()) return find_device_profile(device_profile_);
    HEARTH_ASSIGN(const auto instance, Instance::create({}));
    HEARTH_ASSIGN(const auto device, Device::open(*instance, model_.session.device));
    HEARTH_ASSIGN(const auto pipelines,
                  PipelineStore::create(*device, {.cache_directory = default_cache_directory()}));
    HEARTH_TRY(check_fragments(*device, *pipelines));
    return device->caps();
  }

  Status explain_model() {
    HEARTH_ASSIGN(const std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    if (!prompt_->given()) bench_.prompt = std::min(bench_.prompt, plan.config.context - 1);
    if (bench_.tokens == 0) bench_.batches.clear();
    HEARTH_ASSIGN(const DeviceCaps caps, explained_device());
    model_.session.max_sequences = 1;
    HEARTH_ASSIGN(
        const auto steps,
        explain_steps(caps, plan, bench_session_options(model_.session_options(), bench_), bench_));
    if (!json_) fmt::print("{} on {}\n\n", file->name(), caps.name);
    nlohmann::json list = nlohmann::json::array();
    for (const StepExplanation& step : steps) {
      if (!json_) fmt::print("{}\n", to_text(step));
      list.push_back(to_json(step));
    }
    if (json_)
      fmt::print(
          "{}\n",
          nlohmann::json{{"device", caps.name}, {"model", file->name()}, {"steps", list}}.dump(
              2, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }

  Status run_model() {
    HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, model_.open_file());
    HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
    // The default prompt is too long for some small models.
    if (!prompt_->given()) bench_.prompt = std::min(bench_.prompt, plan.config.context - 1);
    if (bench_.tokens == 0) bench_.batches.clear();
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
    const bool speculates =
        model_.session_options().speculation.method != SpeculationMethod::kNone && !profile_;
    if (speculates) bench_.prompt = 0;
    if (bench_.prompt == 0 && bench_.batches.empty())
      return Error{ErrorKind::kInvalid, "nothing to time: -p and -n are both 0"};
    model_.session.max_sequences = 1;
    if (search_.searches()) bench_.prompt = 0;
    model_.session = bench_session_options(model_.session, bench_);
    if (search_.searches())
      model_.session = search_session_options(model_.session, bench_, search_);
    HEARTH_ASSIGN(const auto session, model_.open(std::move(file)));
    HEARTH_TRY(check_room(*session));
    if (beams_ > 0) return compare_beams(*session);

    KernelBench kernel_bench(session->device(), session->pipelines());
    HEARTH_ASSIGN(const Ceilings ceilings, measure_ceilings(kernel_bench));
    if (!json_) print_ceilings(session->device().caps(), ceilings);
    nlohmann::json list = nlohmann::json::array();
    HEARTH_TRY(profile_             ? profile_steps(*session, ceilings, list)
               : search_.searches() ? time_searches(*session, list)
               : speculates         ? time_speculation(*session, list)
                                    : time_model(*session, ceilings, list));
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"device", session->device().caps().name},
                                        {"model", session->file().name()},
                                        {"ceilings", to_json(ceilings)},
                                        {profile_ ? "profiles" : "results", list}}
                             .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  }

  Status compare_beams(Session& session) const {
    HEARTH_ASSIGN(const BeamTime time, time_beams(session, bench_, beams_));
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"device", session.device().caps().name},
                                        {"model", session.file().name()},
                                        {"beams", time.beams},
                                        {"beam_tokens_per_s", time.beam_tokens_per_s},
                                        {"stream_tokens_per_s", time.stream_tokens_per_s},
                                        {"ratio", time.ratio()}}
                             .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      fmt::print("{} beams: {:.1f} tokens/s; {} streams: {:.1f} tokens/s; ratio {:.3f}\n",
                 time.beams, time.beam_tokens_per_s, time.beams, time.stream_tokens_per_s,
                 time.ratio());
    return {};
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

  Result<Ceilings> measure_ceilings(KernelBench& bench) const {
    Progress progress("timing", ProgressOutput::standard_error(json_));
    progress.update(0, 1, "the device's ceilings");
    return bench.measure_ceilings();
  }

  Status time_model(Session& session, const Ceilings& ceilings, nlohmann::json& list) const {
    ModelBench bench(session, bench_, ceilings);
    // A test's part of the progress is the time that it would take at the device's ceilings.
    const double prompt_seconds = bench_.prompt > 0 ? bench.ideal_prompt_seconds() : 0;
    double all_seconds = prompt_seconds, done_seconds = 0;
    for (const uint32_t batch : bench_.batches) all_seconds += bench.ideal_decode_seconds(batch);
    Progress progress("timing", ProgressOutput::standard_error(json_));
    const auto time = [&](const std::string& name, double seconds, auto test) -> Status {
      HEARTH_ASSIGN(const ModelTime result, test([&](uint32_t run, uint32_t runs) {
                      constexpr double kParts = 1e6;
                      const double done = done_seconds + seconds * run / runs;
                      progress.update(
                          static_cast<uint64_t>(done / std::max(all_seconds, 1e-12) * kParts),
                          static_cast<uint64_t>(kParts),
                          fmt::format("{}, run {} of {}", name, run + 1, runs));
                    }));
      done_seconds += seconds;
      progress.clear();
      if (!json_) print(result);
      list.push_back(to_json(result));
      return {};
    };
    if (!json_) print_model_header();
    if (bench_.prompt > 0)
      HEARTH_TRY(time(fmt::format("prompt of {} tokens", bench_.prompt), prompt_seconds,
                      [&](const auto& on_run) { return bench.prompt(on_run); }));
    for (const uint32_t batch : bench_.batches)
      HEARTH_TRY(time(fmt::format("decode at batch {}", batch), bench.ideal_decode_seconds(batch),
                      [&](const auto& on_run) { return bench.decode(batch, on_run); }));
    return grammar_ != nullptr ? time_grammar(session, list) : Status{};
  }

  Status time_grammar(Session& session, nlohmann::json& list) const {
    Progress progress("timing", ProgressOutput::standard_error(json_));
    if (!json_) print_constrained_header();
    for (const uint32_t batch : bench_.batches) {
      HEARTH_ASSIGN(
          const ConstrainedTime result,
          time_constrained(session, bench_, batch, grammar_, [&](uint32_t run, uint32_t runs) {
            progress.update(run, runs, fmt::format("with the schema at batch {}", batch));
          }));
      progress.clear();
      if (!json_) print(result);
      list.push_back(to_json(result));
    }
    return {};
  }

  Status time_speculation(Session& session, nlohmann::json& list) const {
    SpeculationBench bench(session, bench_);
    Progress progress("timing", ProgressOutput::standard_error(json_));
    if (!json_) print_speculation_header();
    for (size_t i = 0; i < bench_.batches.size(); ++i) {
      const auto on_run = [&](uint32_t part, uint32_t parts) {
        progress.update(i * parts + part, bench_.batches.size() * parts,
                        fmt::format("batch {}, {}", bench_.batches[i],
                                    part == 0 ? "plain" : "with speculation"));
      };
      HEARTH_ASSIGN(const SpeculationTime time, bench.time(bench_.batches[i], on_run));
      progress.clear();
      if (!json_) print(time);
      list.push_back(to_json(time));
    }
    return {};
  }

  Status time_searches(Session& session, nlohmann::json& list) const {
    Progress progress("timing", ProgressOutput::standard_error(json_));
    if (!json_) print_search_header(search_);
    for (const uint32_t batch : bench_.batches) {
      HEARTH_ASSIGN(const SearchTime time,
                    time_search(session, bench_, batch, search_, [&](uint32_t run, uint32_t runs) {
                      progress.update(run, runs,
                                      fmt::format("contrastive search at batch {}", batch));
                    }));
      progress.clear();
      if (!json_) print(time);
      list.push_back(to_json(time));
    }
    return {};
  }

  Status profile_steps(Session& session, const Ceilings& ceilings, nlohmann::json& list) const {
    const size_t tests = bench_.batches.size() + (bench_.prompt > 0 ? 1 : 0);
    Progress progress("timing", ProgressOutput::standard_error(json_));
    const auto profile = [&](uint32_t batch, uint32_t position, uint32_t rows) -> Status {
      progress.update(list.size(), tests,
                      rows > 1 ? fmt::format("prompt step of {} tokens", rows)
                               : fmt::format("decode step at batch {}", batch));
      HEARTH_ASSIGN(const StepProfile result,
                    profile_step(session, batch, position, rows, ceilings));
      progress.clear();
      if (!json_) print(result);
      list.push_back(to_json(result));
      return {};
    };
    const uint32_t step_tokens = session.runner().options().limits.rows;
    if (bench_.prompt > 0) HEARTH_TRY(profile(1, 0, std::min(step_tokens, bench_.prompt)));
    for (const uint32_t batch : bench_.batches) HEARTH_TRY(profile(batch, bench_.context, 1));
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
