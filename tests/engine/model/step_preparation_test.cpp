// Kernels compiled in the background: no step waits for a compiler, and nothing is compiled on the
// engine's thread.
#include "engine/model/step_preparation.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "engine/model/kernel_warm_up.h"
#include "engine/model/step_bucket_list.h"
#include "params/rms_norm.h"
#include "runtime/empty_dispatch.h"
#include "runtime/faults.h"
#include "runtime/log.h"
#include "tests/support/fake_devices.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

// Lets compilers through only while it is open, and notes which threads compiled what. Somebody who
// waits for a compiler there gets through after a while, so that a test fails instead of hanging.
class CompilerGate {
 public:
  explicit CompilerGate(bool open) : open_(open) {}

  void pass(const PipelineInfo& info) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return open_; });
    compiled_[std::this_thread::get_id()].insert(info);
  }
  void set_open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::set<PipelineInfo> compiled_by(std::thread::id thread) {
    const std::lock_guard lock(mutex_);
    return compiled_[thread];
  }
  size_t compiled() {
    const std::lock_guard lock(mutex_);
    size_t sum = 0;
    for (const auto& [thread, infos] : compiled_) sum += infos.size();
    return sum;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_;
  std::map<std::thread::id, std::set<PipelineInfo>> compiled_;
};

class StepPreparationTest : public GpuTest {
 protected:
  static constexpr StepRunnerOptions kRunner{
      .limits = {.rows = 64, .sequences = 4, .candidates = 4, .logit_rows = 8, .context = 1024},
      .slots = 4,
      .kv_blocks = 128};

  std::unique_ptr<PipelineStore> gated_store(CompilerGate& gate) {
    auto store = PipelineStore::create(
        device(), {.cache_directory = {},
                   .before_compile = [&gate](const PipelineInfo& info) { gate.pass(info); }});
    EXPECT_TRUE(store.ok());
    return std::move(store).value();
  }

  static constexpr StepNeeds kNeeds{.mixes = true, .candidates = true};

  static PreparedSteps steps_of(StepRunner& runner, const StepNeeds& needs, bool rest) {
    const StepLimits& limits = runner.options().limits;
    PreparedSteps steps{
        .survey = [&runner](const StepBucket& bucket) { return runner.pipelines_of(bucket); },
        .minimum = minimum_buckets(limits, needs),
        .rest = {}};
    if (rest) steps.rest = covering_buckets(limits, needs);
    return steps;
  }

  static std::unique_ptr<StepPreparation> prepare(PipelineStore& store, StepRunner& runner,
                                                  bool rest) {
    auto preparation = std::make_unique<StepPreparation>(
        store, std::vector{steps_of(runner, kNeeds, rest)}, StepPreparationOptions{.threads = 2});
    runner.set_preparation(preparation.get());
    return preparation;
  }

  // Two pipelines, of one bucket.
  static std::vector<PreparedSteps> two_norms() {
    return {{.survey =
                 [](const StepBucket&) {
                   return std::vector<PipelineInfo>{
                       {.kernel = "rms_norm",
                        .constants = params::RmsNormConstants{.kWorkgroupSize = 64}},
                       {.kernel = "rms_norm",
                        .constants = params::RmsNormConstants{.kWorkgroupSize = 32}}};
                 },
             .minimum = {StepBucket{}},
             .rest = {}}};
  }

  static std::set<PipelineInfo> as_set(const TinyModel& tiny, const StepBucket& bucket) {
    const std::vector<PipelineInfo> infos = tiny.runner->pipelines_of(bucket);
    return {infos.begin(), infos.end()};
  }

  static void wait_until_done(const StepPreparation& preparation) {
    while (!preparation.progress().done) std::this_thread::yield();
  }

  // A step that continues `sequences` sequences by `tokens` tokens each, after `begin`.
  static StepBatch step(const TinyModel& tiny, uint32_t sequences, uint32_t tokens,
                        uint32_t begin = 0) {
    StepBatch batch;
    for (uint32_t i = 0; i < sequences; ++i) {
      std::vector<BlockId> blocks(4);
      std::iota(blocks.begin(), blocks.end(), 4 * i);
      const std::vector<TokenId> prompt = tiny.prompt(begin + tokens, i);
      batch.add_sequence(begin, std::span(prompt).subspan(begin), blocks);
      batch.logit_rows.push_back((i + 1) * tokens - 1);
    }
    batch.sampling.assign(sequences, params::SamplingRow{});
    return batch;
  }

  static std::vector<float> run(const TinyModel& tiny, const StepBatch& batch) {
    auto ticket = tiny.runner->submit(batch);
    EXPECT_TRUE(ticket.ok()) << ticket.error().message;
    EXPECT_TRUE(ticket.ok() && tiny.runner->wait(*ticket).ok());
    auto logits = tiny.runner->read_logits(static_cast<uint32_t>(batch.logit_rows.size()));
    EXPECT_TRUE(logits.ok());
    return logits.ok() ? std::move(logits).value() : std::vector<float>();
  }
};

TEST_F(StepPreparationTest, ASurveyFindsWhatARecordingAsksFor) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  for (const auto& [sequences, tokens] : {std::pair{1u, 1u}, {4u, 1u}, {1u, 37u}, {3u, 20u}}) {
    const size_t before = gate.compiled();
    const StepBatch batch = step(tiny, sequences, tokens);
    StepBucket bucket = choose_bucket(batch.rows(), sequences, batch.longest(), sequences);
    bucket.context = bucket_context(tokens);
    bucket.greedy = true;
    const std::vector<PipelineInfo> infos = tiny.runner->pipelines_of(bucket);
    EXPECT_EQ(gate.compiled(), before) << "a survey compiles nothing";
    EXPECT_FALSE(infos.empty());
    ASSERT_OK(store->prepare(infos));
    const size_t prepared = gate.compiled();
    run(tiny, batch);
    EXPECT_EQ(gate.compiled(), prepared) << sequences << " x " << tokens;
  }
}

// Of every kind of step, on this device and on an H200: its pipelines are prepared, and it can run
// in a larger bucket once the minimum is there. Candidates of contrastive search were not.
TEST_F(StepPreparationTest, EveryKindOfStepIsPrepared) {
  const StepPlanning h200{.caps = with_matrices(fake_devices().front().caps)};
  for (const StepPlanning* planning : {static_cast<const StepPlanning*>(nullptr), &h200}) {
    StepRunnerOptions options = kRunner;
    options.planning = planning;
    ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), pipelines(), options));
    const StepLimits& limits = tiny.runner->options().limits;
    const auto pipelines_of = [&](const std::vector<StepBucket>& buckets) {
      std::set<PipelineInfo> all;
      for (const StepBucket& bucket : buckets) all.merge(std::set(as_set(tiny, bucket)));
      return all;
    };
    const StepNeeds needs{.trees = true, .mixes = true, .candidates = true};
    const std::set<PipelineInfo> minimum = pipelines_of(minimum_buckets(limits, needs));
    std::set<PipelineInfo> all = pipelines_of(covering_buckets(limits, needs));
    all.insert(minimum.begin(), minimum.end());
    for (const StepBucket& size : {choose_bucket(1, 1, 1, 1), choose_bucket(3, 3, 1, 3),
                                   choose_bucket(4, 1, 4, 3), choose_bucket(23, 2, 20, 4)})
      for (uint32_t kind = 0; kind < 128; ++kind) {
        StepBucket bucket = size;
        bucket.context = bucket_context(300);
        bucket.extras = static_cast<uint8_t>(kind % 64);
        bucket.trees = kind >= 64;
        if (bucket.trees && bucket.sequence_rows == 1) continue;  // a tree has several rows
        EXPECT_TRUE(std::ranges::includes(all, as_set(tiny, bucket)))
            << bucket.rows << " rows, kind " << kind;
        EXPECT_TRUE(std::ranges::any_of(stand_in_buckets(bucket, limits),
                                        [&](const StepBucket& larger) {
                                          return std::ranges::includes(minimum,
                                                                       as_set(tiny, larger));
                                        }))
            << bucket.rows << " rows, kind " << kind;
      }
  }
}

TEST_F(StepPreparationTest, NothingIsCompiledOnTheEngineThreadAfterLoading) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  const size_t at_loading = gate.compiled_by(std::this_thread::get_id()).size();
  const auto preparation = prepare(*store, *tiny.runner, true);
  ASSERT_OK(preparation->wait_for_minimum());
  const std::unique_ptr<Engine> engine = tiny.engine();
  std::thread::id engine_thread;
  engine->inspect([&](const Scheduler&) { engine_thread = std::this_thread::get_id(); });
  const auto generate = [&](uint32_t seed, bool sampled) {
    GenerationRequest request{.prompt = tiny.prompt(3 + 29 * seed, seed)};
    request.max_tokens = 4 + 3 * seed;
    request.sampling.temperature = sampled ? 0.8f : 0.0f;
    request.sampling.repetition_penalty = seed % 2 == 0 ? 1.1f : 1.0f;
    if (seed == 1) request.guidance.scale = 1.5f;
    if (seed == 5) {
      request.sampling = {};
      request.contrastive_search = {.alpha = 0.6f, .top_k = 3};
    }
    return engine->submit(std::move(request));
  };
  // Twice: while compilers take very long, and when everything is compiled.
  for (const bool later : {false, true}) {
    gate.set_open(later);
    if (later) wait_until_done(*preparation);
    std::vector<TokenStream> streams;
    for (uint32_t seed = 0; seed < 7; ++seed) {
      auto stream = generate(seed, seed % 3 == 0);
      ASSERT_TRUE(stream.ok()) << stream.error().message;
      streams.push_back(std::move(stream).value());
    }
    for (TokenStream& stream : streams) {
      while (stream.next()) {
      }
      EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
    }
  }
  EXPECT_TRUE(gate.compiled_by(engine_thread).empty());
  EXPECT_EQ(gate.compiled_by(std::this_thread::get_id()).size(), at_loading);
  EXPECT_EQ(tiny.runner->stalled_steps(), 0u);
  const PreparationProgress progress = preparation->progress();
  EXPECT_EQ(progress.ready, progress.total);
  // Everything that ran was in the list: nothing was added while running.
  EXPECT_EQ(store->size(), gate.compiled());
}

TEST_F(StepPreparationTest, AStepRunsWhileItsKernelsAreBeingCompiled) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  ASSERT_ASSIGN(const TinyModel usual, TinyModel::open(device(), pipelines(), kRunner));
  const auto preparation = prepare(*store, *tiny.runner, false);
  ASSERT_OK(preparation->wait_for_minimum());
  gate.set_open(false);
  const size_t before = gate.compiled();
  // Three sequences have no kernels of their own size: they run as four.
  for (const auto& [sequences, tokens, begin] :
       {std::tuple{3u, 20u, 0u}, {3u, 1u, 20u}, {1u, 37u, 0u}, {1u, 1u, 37u}, {2u, 11u, 0u}}) {
    const StepBatch batch = step(tiny, sequences, tokens, begin);
    const std::vector<float> logits = run(tiny, batch), expected = run(usual, batch);
    ASSERT_EQ(logits.size(), expected.size());
    // Kernels of another size may round to F16 where these do not.
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 3e-2) << sequences << " x " << tokens << ", " << i;
  }
  EXPECT_EQ(gate.compiled(), before);
  EXPECT_EQ(tiny.runner->stalled_steps(), 0u);
  // What was missing is compiled now, and used.
  gate.set_open(true);
  const StepBatch batch = step(tiny, 3, 1, 20);
  for (size_t recorded = tiny.runner->recorded_steps(); tiny.runner->recorded_steps() == recorded;)
    run(tiny, batch);
  EXPECT_GT(gate.compiled(), before);
}

TEST_F(StepPreparationTest, KernelsAreReadyOnceTheyAreWarmedUp) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  std::atomic<bool> idle = false;
  std::atomic<uint32_t> asked = 0, done = 0;
  std::vector<uint32_t> warm;  // by one thread at a time
  StepPreparation preparation(*store, two_norms(),
                              {.threads = 2,
                               .done = [&](const PreparationProgress&) { ++done; },
                               .warm_up = [&](const Pipeline& pipeline) -> Result<bool> {
                                 ++asked;
                                 if (!idle) return false;
                                 warm.push_back(pipeline.info().constants.workgroup_size());
                                 return true;
                               }});
  ASSERT_OK(preparation.wait_for_minimum());  // does not wait for it
  while (asked < 3) std::this_thread::yield();
  EXPECT_EQ(preparation.progress().ready, 0u);
  EXPECT_EQ(preparation.progress().total, 2u);
  EXPECT_FALSE(preparation.progress().done);
  EXPECT_EQ(done, 0u);
  // Meanwhile others are compiled.
  const std::vector<PipelineInfo> urgent{
      {.kernel = "rms_norm", .constants = params::RmsNormConstants{.kWorkgroupSize = 16}}};
  preparation.hurry(urgent);
  while (store->find(urgent.front()) == nullptr) std::this_thread::yield();
  idle = true;
  wait_until_done(preparation);
  EXPECT_EQ(preparation.progress().ready, 3u);
  EXPECT_EQ(std::set(warm.begin(), warm.end()), (std::set<uint32_t>{16, 32, 64}));
  EXPECT_EQ(warm.size(), 3u);
  while (done == 0) std::this_thread::yield();
}

TEST_F(StepPreparationTest, KernelsAreWarmedUpWhileNoStepRuns) {
  ASSERT_ASSIGN(const Pipeline* norm,
                pipelines().get({.kernel = "rms_norm",
                                 .constants = params::RmsNormConstants{.kWorkgroupSize = 64}}));
  KernelWarmUp warm_up(device());
  const auto runs = [&] {
    const Result<bool> ran = warm_up.run_if_idle(*norm);
    EXPECT_TRUE(ran.ok());
    return ran.ok() && *ran;
  };
  const auto submit = [&] { ASSERT_OK(dispatch_empty(device(), *norm)); };
  submit();
  EXPECT_FALSE(runs()) << "the device was busy just now";
  std::this_thread::sleep_for(KernelWarmUp::kQuiet);
  EXPECT_TRUE(runs());
  EXPECT_TRUE(runs()) << "its own work does not count";
  submit();
  EXPECT_FALSE(runs());
  std::this_thread::sleep_for(KernelWarmUp::kQuiet);
  EXPECT_TRUE(runs());
}

TEST_F(StepPreparationTest, EndsBetweenTwoPipelines) {
  CompilerGate gate(false);
  const auto store = gated_store(gate);
  gate.set_open(true);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  gate.set_open(false);
  const size_t before = gate.compiled();
  auto preparation = prepare(*store, *tiny.runner, true);
  while (preparation->progress().total < 4) std::this_thread::yield();
  std::thread ends([&] { preparation.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.set_open(true);
  ends.join();
  // Each of its two threads finishes the one that it has begun.
  EXPECT_LE(gate.compiled() - before, 2u);
  tiny.runner->set_preparation(nullptr);
}

TEST_F(StepPreparationTest, AKernelThatCannotBeCompiledIsReported) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  const PreparedSteps steps{
      .survey =
          [](const StepBucket&) {
            return std::vector<PipelineInfo>{{.kernel = "no_such_kernel", .constants = {}}};
          },
      .minimum = {StepBucket{}},
      .rest = {}};
  StepPreparation preparation(*store, {steps}, {.threads = 1});
  const Status status = preparation.wait_for_minimum();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("no_such_kernel"), std::string::npos);
}

TEST_F(StepPreparationTest, ALostDeviceEndsItWithoutALineForEveryKernel) {
  size_t lines = 0;
  const ScopedLogSink sink([&](std::string_view) { ++lines; });
  ASSERT_ASSIGN(const auto lost, open_device());
  ASSERT_ASSIGN(const auto store, PipelineStore::create(*lost));
  lost->faults().submission.arm(1);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(*lost));
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  ASSERT_FALSE(lost->compute().run(commands).ok());
  const size_t before = lines;
  const PreparedSteps steps{
      .survey =
          [](const StepBucket& bucket) {
            return std::vector<PipelineInfo>{
                {.kernel = "rms_norm",
                 .constants = params::RmsNormConstants{.kWorkgroupSize = bucket.rows}}};
          },
      .minimum = {choose_bucket(1, 1, 1, 1), choose_bucket(2, 2, 1, 2), choose_bucket(3, 3, 1, 3)},
      .rest = {}};
  StepPreparation preparation(*store, {steps}, {.threads = 1});
  const Status status = preparation.wait_for_minimum();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(lines, before);
}

}  // namespace
}  // namespace hearth::testing
