// Owns the engine that the dashboard shows: a model opened in the background, the demo, or a
// connection to a server. Call only from the window's thread; loading runs on its own thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "engine/session.h"
#include "runtime/result.h"
#include "ui/data/comparison_desk.h"
#include "ui/data/number_interval.h"
#include "ui/data/roofline_data.h"
#include "ui/data/scrubber.h"
#include "ui/feeds/engine_feed.h"
#include "ui/feeds/engine_view.h"
#include "ui/engine_control.h"
#include "ui/feeds/feed.h"
#include "ui/feeds/remote_calls.h"
#include "ui/feeds/remote_control.h"

namespace hearth {

// What to open. `model` is what -m takes; empty means the built-in model.
struct ModelChoice {
  std::string model;
  SessionOptions session;
};

class EngineHost {
 public:
  // Measures the roofline while no engine uses the session's runner. Passed in by the command,
  // because that code belongs to the benchmark. May be empty.
  using Measure = std::function<Result<RooflineData>(Session&)>;
  explicit EngineHost(Measure measure);
  // Waits for loading or measuring to finish.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Each closes the current engine and opens another. Errors are in view().failure. Ignored while a
  // model is being loaded.
  void open(ModelChoice choice);
  // `limits` of its engine; without them a small one, so that a class soon sees it run out of
  // blocks.
  void start_demo(const std::optional<SchedulerLimits>& limits = {});
  void connect(const std::string& url, const std::string& api_key);
  // Shows a recording, without an engine.
  void open_recording(ViewHistory history);

  // Call once per frame with the time since the last one: takes over a loaded model and polls the
  // feed.
  void update(double seconds_passed);
  const EngineView& view() const { return view_; }
  // Changes with the engine; view().generation also changes when the display goes back in time.
  uint64_t generation() const { return engine_generation_; }

  // The last steps, to look at again. leave_past() goes back to the present.
  const Scrubber& scrubber() const { return scrubber_; }
  Scrubber& scrubber() { return scrubber_; }
  void leave_past();
  bool is_recording() const { return recording_; }
  // Writes the last steps into a file that open_recording() reads. The outcome is one line.
  std::string save_recording(const std::string& path);
  // Counts and averages start over.
  void restart_numbers() { restarts_.restart(); }

  // Null while loading, after a failure, and when connected to a server.
  Engine* engine() const { return engine_; }
  // What can be changed about the engine, here or on the server; null if nothing can. Valid in this
  // frame only.
  EngineControl* control();
  // Why control() is null, as a sentence.
  const char* why_no_control() const;
  // Requests to the server that is being watched; null if there is none.
  RemoteCalls* remote_calls() const { return calls_.get(); }
  // Also null for the demo.
  Session* session() const { return session_.get(); }
  const ModelChoice& choice() const { return choice_; }
  bool is_demo() const { return demo_ != nullptr; }

  struct Loading {
    bool active = false;
    std::string what;
    uint64_t done_bytes = 0, total_bytes = 0;
  };
  Loading loading() const;

  // Stops the engine, which ends its requests, measures, and starts a new engine. The result is in
  // roofline().
  void measure_roofline();
  bool measuring() const;
  const RooflineData& roofline() const { return roofline_; }

  // Stops the engine, which ends its requests, runs `work` on a thread of its own, and starts a new
  // engine. `what` is shown meanwhile. False if there is no session or it is busy.
  bool borrow_session(std::string what, std::function<void(Session&)> work);

  // A file dropped on the window: text for the chat, anything else for the Models panel.
  void drop(std::string path) { dropped_ = std::move(path); }
  bool has_dropped() const { return !dropped_.empty(); }
  const std::string& dropped() const { return dropped_; }
  std::string take_dropped() { return std::exchange(dropped_, {}); }

  // A lesson to open, for the Lessons panel.
  void open_lesson(std::string name) { lesson_ = std::move(name); }
  bool has_lesson() const { return !lesson_.empty(); }
  std::string take_lesson() { return std::exchange(lesson_, {}); }
  // While a lesson has the engine for itself, the Control panel stops its load and starts none.
  void reserve_for_lesson(bool reserved) { reserved_ = reserved; }
  bool reserved_for_lesson() const { return reserved_; }

  // A comparison, for the Compare panel, which has the window to itself while it is open, or shares
  // it with the lesson that opened it.
  void open_comparison(ComparisonWish wish, bool for_lesson = false);
  void close_comparison() { comparing_ = false; }
  bool comparing() const { return comparing_; }
  bool comparing_for_lesson() const { return for_lesson_; }
  std::optional<ComparisonWish> take_comparison() { return std::exchange(wish_, std::nullopt); }

  // Something moves on the screen although no step has run: frames are drawn more often.
  void animate(bool animated) { animated_ = animated; }
  bool animated() const { return animated_ || scrubber_.playing(); }

  void pause(bool paused);
  // Now, even if the display shows the past.
  bool engine_paused() { return control() != nullptr && control()->paused(); }
  void set_pace(double steps_per_s);

 private:
  // Loading or measuring, on its own thread.
  struct Job;
  // The engine of --demo.
  struct Demo;

  bool busy() const { return job_ != nullptr; }
  void close_engine();
  void begin_engine();
  void finish_job();
  void show_session();
  void show(Engine& engine, EngineFacts facts);

  Measure measure_;
  std::string dropped_, lesson_;
  bool reserved_ = false;
  std::optional<ComparisonWish> wish_;
  bool comparing_ = false, for_lesson_ = false;
  ModelChoice choice_;
  EngineView view_;
  EngineView live_;  // while view_ shows the past
  uint64_t generation_ = 0, engine_generation_ = 0;
  Scrubber scrubber_;
  NumberRestarts restarts_;
  bool recording_ = false, was_past_ = false, animated_ = false;
  RooflineData roofline_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Demo> demo_;
  Engine* engine_ = nullptr;
  std::optional<LocalControl> local_control_;
  std::unique_ptr<RemoteCalls> calls_;
  std::unique_ptr<RemoteControl> remote_control_;  // while the server can be controlled
  std::unique_ptr<Feed> feed_;
};

}  // namespace hearth
