#include "ui/engine_host.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "engine/open_model_file.h"
#include "engine/weights/model_name.h"
#include "models/default_model.h"
#include "runtime/memory.h"
#include "tools/replay/modelled_executor.h"
#include "ui/data/recording.h"
#include "ui/feeds/remote_feed.h"

namespace hearth {

// The thread writes the results before it sets `done`; the window reads them afterwards.
struct EngineHost::Job {
  enum class Kind { kLoad, kMeasure, kBorrow };

  Kind kind = Kind::kLoad;
  std::string what;
  std::atomic<uint64_t> done_bytes{0}, total_bytes{0};
  Result<std::unique_ptr<Session>> session = std::unique_ptr<Session>();
  Result<RooflineData> roofline = RooflineData{};
  std::atomic<bool> done{false};
  std::thread thread;

  ~Job() {
    if (thread.joinable()) thread.join();
  }
};

namespace {

constexpr SchedulerLimits kDemoLimits{.max_sequences = 12,
                                      .max_step_tokens = 256,
                                      .context = 1024,
                                      .pool_blocks = 192,
                                      .swap_blocks = 96};

// The name that ModelFile::name() will have, without reading from disk on the window's thread.
std::string name_before_loading(const std::string& model) {
  return model.empty() ? std::string(default_model_name()) : model_name(model);
}

EngineFacts engine_facts(Session& session) {
  const MemoryPlan& plan = session.memory();
  EngineFacts facts;
  facts.model = session.file().name();
  facts.device = session.device().caps().name;
  facts.source = facts.model + " on " + facts.device;
  facts.memory = {{"weights", plan.weight_bytes},
                  {"KV cache", plan.kv_blocks * plan.kv_bytes_per_block},
                  {"activations", plan.activation_bytes}};
  facts.memory_budget_bytes = session.device().caps().memory_bytes();
  return facts;
}

}  // namespace

struct EngineHost::Demo {
  explicit Demo(const SchedulerLimits& limits)
      : engine(executor, nullptr, {.limits = limits, .vocabulary = device.vocabulary}) {}

  ModelledDevice device;
  ModelledExecutor executor{device};
  Engine engine;
};

EngineHost::EngineHost(Measure measure) : measure_(std::move(measure)) {}

EngineHost::~EngineHost() {
  job_.reset();
  close_engine();
}

void EngineHost::close_engine() {
  feed_.reset();
  remote_control_.reset();
  calls_.reset();
  engine_ = nullptr;
  demo_.reset();
  session_.reset();
  roofline_ = {};
  begin_engine();
}

const char* EngineHost::why_no_control() const {
  if (recording_) return "This is a recording. The bar in the panel Timeline plays it.";
  if (calls_ && view_.connected)
    return "This server was started without --control: you can send it requests, but not change "
           "anything else.";
  return "No engine is running yet.";
}

// The engine on display is another one from now on.
void EngineHost::begin_engine() {
  view_ = {};
  live_ = {};
  view_.generation = engine_generation_ = ++generation_;
  scrubber_.leave();
  scrubber_.history.clear();
  recording_ = was_past_ = false;
}

void EngineHost::open(ModelChoice choice) {
  if (busy()) return;
  close_engine();
  choice_ = std::move(choice);
  job_ = std::make_unique<Job>();
  job_->what = name_before_loading(choice_.model);
  job_->thread = std::thread([job = job_.get(), wanted = choice_] {
    SessionOptions options = wanted.session;
    options.progress = [job](uint64_t done, uint64_t total) {
      job->done_bytes = done;
      job->total_bytes = total;
    };
    job->session = [&]() -> Result<std::unique_ptr<Session>> {
      HEARTH_ASSIGN(auto file, open_model_file(wanted.model));
      return Session::open(std::move(file), options);
    }();
    job->done = true;
  });
}

void EngineHost::start_demo(const std::optional<SchedulerLimits>& limits) {
  if (busy()) return;
  close_engine();
  demo_ = std::make_unique<Demo>(limits.value_or(kDemoLimits));
  show(demo_->engine, {.source = "demo (the real scheduler on a simulated device)",
                       .model = "demo",
                       .device = demo_->device.describe_card(),
                       .memory = {},
                       .memory_budget_bytes = 0});
}

void EngineHost::connect(const std::string& url, const std::string& api_key) {
  if (busy()) return;
  close_engine();
  auto remote = RemoteFeed::create(url, {.api_key = api_key});
  if (!remote.ok()) {
    view_.failure = remote.error().message;
    return;
  }
  auto calls = RemoteCalls::create(url, api_key);
  if (!calls.ok()) {
    view_.failure = calls.error().message;
    return;
  }
  feed_ = std::move(remote).value();
  calls_ = std::move(calls).value();
}

EngineControl* EngineHost::control() {
  if (engine_ != nullptr) return &local_control_.emplace(*engine_);
  return remote_control_.get();
}

void EngineHost::show(Engine& engine, EngineFacts facts) {
  begin_engine();
  engine_ = &engine;
  feed_ = std::make_unique<EngineFeed>(engine, std::move(facts));
}

void EngineHost::show_session() { show(session_->engine(), engine_facts(*session_)); }

void EngineHost::measure_roofline() {
  if (busy() || !session_ || !measure_) return;
  feed_.reset();
  engine_ = nullptr;
  session_->stop_engine();
  job_ = std::make_unique<Job>();
  job_->kind = Job::Kind::kMeasure;
  job_->what = "measuring kernels";
  job_->thread = std::thread([job = job_.get(), this] {
    job->roofline = measure_(*session_);
    job->done = true;
  });
}

bool EngineHost::borrow_session(std::string what, std::function<void(Session&)> work) {
  if (busy() || !session_) return false;
  feed_.reset();
  engine_ = nullptr;
  session_->stop_engine();
  job_ = std::make_unique<Job>();
  job_->kind = Job::Kind::kBorrow;
  job_->what = std::move(what);
  job_->thread = std::thread([job = job_.get(), this, work = std::move(work)] {
    work(*session_);
    job->done = true;
  });
  return true;
}

void EngineHost::open_comparison(ComparisonWish wish, bool for_lesson) {
  wish_ = std::move(wish);
  comparing_ = true;
  for_lesson_ = for_lesson;
}

bool EngineHost::measuring() const { return job_ && job_->kind == Job::Kind::kMeasure; }

EngineHost::Loading EngineHost::loading() const {
  if (!job_) return {};
  return {.active = true,
          .what = job_->what,
          .done_bytes = job_->done_bytes,
          .total_bytes = job_->total_bytes};
}

void EngineHost::finish_job() {
  const std::unique_ptr<Job> job = std::move(job_);
  job->thread.join();
  if (job->kind == Job::Kind::kMeasure) {
    if (job->roofline.ok())
      roofline_ = std::move(job->roofline).value();
    else
      roofline_ = {.failure = job->roofline.error().message};
    show_session();
    return;
  }
  if (job->kind == Job::Kind::kBorrow) {
    show_session();
    return;
  }
  if (!job->session.ok()) {
    begin_engine();
    view_.failure = job->session.error().message;
    return;
  }
  session_ = std::move(job->session).value();
  show_session();
}

void EngineHost::update(double seconds_passed) {
  if (job_ && job_->done) finish_job();
  const bool past = scrubber_.active();
  if (past != was_past_) {
    std::swap(view_, live_);
    view_.pace = live_.pace = std::max(view_.pace, live_.pace);
  }
  EngineView& live = past ? live_ : view_;
  if (feed_) {
    feed_->poll(live);
    if (session_ && session_->preparation() != nullptr)
      live.kernels = session_->preparation()->progress();
    if (calls_ && live.controllable && !remote_control_)
      remote_control_ = std::make_unique<RemoteControl>(*calls_);
    if (remote_control_ && !live.controllable) remote_control_.reset();
    if (remote_control_) remote_control_->update(live);
    // A server that restarted is another engine.
    const uint64_t engine = engine_generation_ | (live.generation >> 32 << 32);
    restarts_.follow(live, engine);
    scrubber_.history.add(live, engine);
  } else if (!past) {
    view_.connected = false;
    view_.new_steps.clear();
  }
  if (past)
    scrubber_.show(view_, generation_, seconds_passed);
  else if (was_past_)
    scrubber_.rejoin(view_, generation_);
  was_past_ = past;
}

void EngineHost::leave_past() {
  if (!recording_) scrubber_.leave();
}

void EngineHost::open_recording(ViewHistory history) {
  if (busy()) return;
  close_engine();
  scrubber_.history = std::move(history);
  recording_ = true;
  scrubber_.seek(scrubber_.history.end());
}

std::string EngineHost::save_recording(const std::string& path) {
  if (scrubber_.history.empty()) return "There is nothing to record yet.";
  const Status saved = write_recording(scrubber_.history, path);
  if (!saved.ok()) return saved.error().message;
  return fmt::format("{} steps are in {}.", scrubber_.history.end() - scrubber_.history.first(),
                     path);
}

void EngineHost::pause(bool paused) {
  if (EngineControl* const engine = control()) engine->pause(paused);
}

void EngineHost::set_pace(double steps_per_s) {
  EngineControl* const engine = control();
  if (engine == nullptr) return;
  engine->set_pace(steps_per_s);
  view_.pace = live_.pace = steps_per_s;
}

}  // namespace hearth
