#include "tools/lessons/lesson_runner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "engine/model_library.h"
#include "tools/lessons/lesson_model.h"
#include "tools/lessons/lesson_plan.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/replay_progress.h"

namespace hearth {
namespace {

constexpr uint64_t kLessonPromptSeed = 1;

// The runs of a lesson that have the same weights.
class LessonGroup {
 public:
  LessonGroup(const Lesson& lesson, const LessonPlace& place, std::string weights)
      : lesson_(lesson), place_(place), weights_(std::move(weights)) {}

  Status open(LessonResults& results) {
    if (place_.simulate) {
      const ModelledDevice device = lesson_device(weights_);
      weight_bytes_ = device.weight_bytes();
      target_ = make_simulated_target(device, lesson_limits(lesson_));
    } else {
      HEARTH_ASSIGN(std::unique_ptr<ModelFile> file, open_lesson_model(place_.model, weights_));
      HEARTH_TRY(open_session(std::move(file)));
    }
    ReplaySetting setting;
    target_->describe(setting);
    limits_ = setting.limits;
    results.simulated = setting.simulated;
    if (results.model.empty()) {
      HEARTH_ASSIGN(results.model, model_name_of(setting));
    }
    results.device = setting.device;
    if (session_ != nullptr && !lesson_.score.empty()) {
      HEARTH_ASSIGN(perplexity_, score_text(*session_, lesson_.score));
    }
    return {};
  }

  Result<LessonRunResult> run(const LessonRun& run, size_t number) {
    Trace trace = lesson_trace(lesson_, run, place_.simulate);
    const uint64_t pool_tokens = uint64_t{limits_.pool_blocks} * kTokensPerBlock;
    clip_lengths(trace, static_cast<uint32_t>(std::min<uint64_t>(limits_.context, pool_tokens)));
    const std::vector<std::vector<TokenId>> prompts = make_prompts(trace);
    const PlannedReplay planned = plan_lesson_run(run, limits_);
    ReplayInput input{.trace = trace,
                      .prompts = prompts,
                      .begin = {},
                      .step = {},
                      .temperature = static_cast<float>(run.settings.temperature),
                      .beam = lesson_beams(run.settings)};
    HEARTH_TRY(warm(planned, input));
    ReplayProgress progress(
        fmt::format("run {} ({} of {})", run.name, number + 1, lesson_.runs.size()), trace,
        place_.progress);
    input.step = [&](const StepRecord& record) { progress.add(record); };
    HEARTH_ASSIGN(const ReplayRun measured, target_->replay(planned, input));
    return result_of(run, measured);
  }

 private:
  Status open_session(std::unique_ptr<ModelFile> file) {
    SessionOptions options = lesson_session(lesson_, weights_, place_.session);
    Progress progress("loading " + file->name(), place_.progress);
    options.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
    HEARTH_ASSIGN(std::unique_ptr<Session> session, Session::open(std::move(file), options));
    session_ = session.get();
    weight_bytes_ = static_cast<double>(session->memory().weight_bytes);
    target_ = make_device_target(std::move(session));
    return {};
  }

  // A converted model is still the same model.
  Result<std::string> model_name_of(const ReplaySetting& setting) const {
    if (place_.simulate || weights_.empty()) return setting.model;
    HEARTH_ASSIGN(const LibraryModel model, find_model(place_.model));
    return model.name;
  }

  std::vector<std::vector<TokenId>> make_prompts(const Trace& trace) const {
    std::vector<std::vector<TokenId>> prompts;
    if (session_ != nullptr && session_->tokenizer() != nullptr && !lesson_.prompt.empty()) {
      const std::vector<TokenId> prompt = session_->tokenizer()->encode(lesson_.prompt);
      prompts.assign(trace.requests.size(), prompt);
      return prompts;
    }
    const PromptMaker maker(target_->text_ids(), kLessonPromptSeed);
    for (size_t i = 0; i < trace.requests.size(); ++i)
      prompts.push_back(maker.make(trace.requests[i], i));
    return prompts;
  }

  // Kernels are compiled and steps recorded when they first come up, which no run may be charged
  // for. Warming up makes up the sampled tokens but not what beams and proposals need, so runs with
  // those are warmed up by running them.
  Status warm(const PlannedReplay& planned, const ReplayInput& input) {
    if (place_.simulate) return {};
    Progress progress("warming up", place_.progress);
    ReplayOverhead overhead;
    if (!input.beam.searches() && planned.speculation.method == SpeculationMethod::kNone)
      return target_->prepare(std::span(&planned, 1), input, progress, overhead);
    HEARTH_TRY(target_->replay(planned, input));
    return {};
  }

  LessonRunResult result_of(const LessonRun& run, const ReplayRun& measured) const {
    LessonRunResult result{.name = run.name};
    result.report = make_report(measured, lesson_.goal_on(place_.simulate));
    result.report.policy = run.name;
    result.weight_bytes = weight_bytes_;
    result.perplexity = perplexity_;
    if (measured.proposed_tokens > 0)
      result.accepted_share = static_cast<double>(measured.accepted_tokens) /
                              static_cast<double>(measured.proposed_tokens);
    if (session_ == nullptr || lesson_.prompt.empty() || measured.answers.empty()) return result;
    const ReplayAnswer& answer = measured.answers.front();
    result.text = answer.text;
    const double tokens = static_cast<double>(result.report.generated_tokens) /
                          static_cast<double>(result.report.requests);
    if (tokens > 0) result.logprob = answer.logprob / tokens;
    return result;
  }

  const Lesson& lesson_;
  const LessonPlace& place_;
  const std::string weights_;
  std::unique_ptr<ReplayTarget> target_;
  Session* session_ = nullptr;  // the target's; null in a simulation
  SchedulerLimits limits_;
  double weight_bytes_ = 0;
  std::optional<double> perplexity_;
};

}  // namespace

Result<LessonResults> run_lesson(const Lesson& lesson, const LessonPlace& place) {
  LessonResults results;
  results.runs.resize(lesson.runs.size());
  // Groups one after the other: two models at once may not fit on the device.
  for (const std::string& weights : lesson_weights(lesson)) {
    LessonGroup group(lesson, place, weights);
    HEARTH_TRY(group.open(results));
    for (size_t i = 0; i < lesson.runs.size(); ++i) {
      if (lesson.runs[i].settings.weights != weights) continue;
      HEARTH_ASSIGN(results.runs[i], group.run(lesson.runs[i], i));
    }
  }
  return results;
}

}  // namespace hearth
