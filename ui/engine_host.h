// Which engine the dashboard shows and talks to: a model that is opened in the background, the
// demo, or a remote server. Of the window's thread alone; loading runs on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "engine/session.h"
#include "runtime/result.h"
#include "ui/data/roofline_data.h"
#include "ui/feeds/engine_view.h"
#include "ui/feeds/feed.h"

namespace hearth {

// What to open. `model` is what -m takes: empty is the embedded default.
struct ModelChoice {
  std::string model;
  SessionOptions session;
};

class EngineHost {
 public:
  // Measures kernels for the roofline on an idle runner; set by the command, because that code is
  // the benchmark's.
  using Measure = std::function<Result<RooflineData>(Session&)>;
  explicit EngineHost(Measure measure) : measure_(std::move(measure)) {}
  // Waits for whatever loads or runs.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Lets go of the engine there is, and opens another. What goes wrong is in view().failure.
  void open(ModelChoice choice);
  void play_demo();
  void connect(const std::string& url);

  // Once a frame: takes what has been loaded, polls the feed.
  void update();
  const EngineView& view() const { return view_; }

  // Null while loading, after a failure, and for a remote engine.
  Engine* engine() const { return engine_; }
  // Null for the demo and a remote engine, too.
  Session* session() const { return session_.get(); }
  const ModelChoice& choice() const { return choice_; }

  struct Loading {
    bool active = false;
    std::string what;
    uint64_t done_bytes = 0, total_bytes = 0;
  };
  Loading loading() const;

  // Takes the engine down, measures, and starts a new one; the requests that ran end. The result is
  // in roofline().
  void measure_roofline();
  bool measuring() const;
  const RooflineData& roofline() const { return roofline_; }

  void pause(bool paused);
  void set_pace(double steps_per_s);

 private:
  struct Job;  // what a thread of its own does
  struct Demo;

  void let_go();
  void start(std::unique_ptr<Job> job);
  void use(Engine& engine, std::string source);

  Measure measure_;
  ModelChoice choice_;
  EngineView view_;
  uint64_t generation_ = 0;
  RooflineData roofline_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Demo> demo_;
  Engine* engine_ = nullptr;
  std::unique_ptr<Feed> feed_;
};

}  // namespace hearth
