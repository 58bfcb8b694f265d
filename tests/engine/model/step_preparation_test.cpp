// Kernels compiled in the background: no step waits for a compiler, and nothing is compiled on the
// engine's thread.
#include "engine/model/step_preparation.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "engine/model/step_bucket_list.h"
#include "runtime/faults.h"
#include "runtime/log.h"
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
      .limits = {.rows = 64, .sequences = 4, .logit_rows = 8, .context = 1024},
      .slots = 4,
      .kv_blocks = 128};

  std::unique_ptr<PipelineStore> gated_store(CompilerGate& gate) {
    auto store = PipelineStore::create(
        device(), {.cache_directory = {},
                   .before_compile = [&gate](const PipelineInfo& info) { gate.pass(info); }});
    EXPECT_TRUE(store.ok());
    return std::move(store).value();
  }

  static std::unique_ptr<StepPreparation> prepare(PipelineStore& store, StepRunner& runner,
                                                  std::vector<StepBucket> rest) {
    auto preparation = std::make_unique<StepPreparation>(
        store, [&runner](const StepBucket& bucket) { return runner.pipelines_of(bucket); },
        StepPreparationOptions{.minimum = minimum_buckets(runner.options().limits, {}),
                               .rest = std::move(rest),
                               .threads = 2,
                               .done = {}});
    runner.set_preparation(preparation.get());
    return preparation;
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

TEST_F(StepPreparationTest, NothingIsCompiledOnTheEngineThreadAfterLoading) {
  CompilerGate gate(true);
  const auto store = gated_store(gate);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  const size_t at_loading = gate.compiled_by(std::this_thread::get_id()).size();
  const auto preparation =
      prepare(*store, *tiny.runner, covering_buckets(tiny.runner->options().limits, {}));
  ASSERT_OK(preparation->wait_for_minimum());
  const std::unique_ptr<Engine> engine = tiny.engine();
  std::thread::id engine_thread;
  engine->inspect([&](const Scheduler&) { engine_thread = std::this_thread::get_id(); });
  const auto generate = [&](uint32_t seed, bool sampled) {
    GenerationRequest request{.prompt = tiny.prompt(3 + 29 * seed, seed)};
    request.max_tokens = 4 + 3 * seed;
    request.sampling.temperature = sampled ? 0.8f : 0.0f;
    request.sampling.repetition_penalty = seed % 2 == 0 ? 1.1f : 1.0f;
    return engine->submit(std::move(request));
  };
  // Twice: while compilers take very long, and when everything is compiled.
  for (const bool later : {false, true}) {
    gate.set_open(later);
    if (later)
      while (!preparation->progress().done) std::this_thread::yield();
    std::vector<TokenStream> streams;
    for (uint32_t seed = 0; seed < 7; ++seed) {
      auto stream = generate(seed, seed % 3 == 0);
      ASSERT_TRUE(stream.ok()) << stream.error().message;
      streams.push_back(std::move(stream).value());
    }
    for (TokenStream& stream : streams) {
      while (stream.next()) {
      }
      EXPECT_EQ(stream.end().reason, FinishReason::kLength);
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
  const auto preparation = prepare(*store, *tiny.runner, {});
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

TEST_F(StepPreparationTest, EndsBetweenTwoPipelines) {
  CompilerGate gate(false);
  const auto store = gated_store(gate);
  gate.set_open(true);
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), *store, kRunner));
  gate.set_open(false);
  const size_t before = gate.compiled();
  auto preparation =
      prepare(*store, *tiny.runner, covering_buckets(tiny.runner->options().limits, {}));
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
  StepPreparation preparation(
      *store,
      [](const StepBucket&) {
        return std::vector<PipelineInfo>{{.kernel = "no_such_kernel", .constants = {}}};
      },
      {.minimum = {StepBucket{}}, .rest = {}, .threads = 1, .done = {}});
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
  StepPreparation preparation(
      *store,
      [](const StepBucket& bucket) {
        return std::vector<PipelineInfo>{{.kernel = "rms_norm", .constants = {bucket.rows}}};
      },
      {.minimum = {choose_bucket(1, 1, 1, 1), choose_bucket(2, 2, 1, 2), choose_bucket(3, 3, 1, 3)},
       .rest = {},
       .threads = 1,
       .done = {}});
  const Status status = preparation.wait_for_minimum();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kDeviceLost);
  EXPECT_EQ(lines, before);
}

}  // namespace
}  // namespace hearth::testing
