// Which engine the dashboard shows and talks to: a model that is opened in the background, the
// demo, or a remote server. Of the window's thread alone; loading runs on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "engine/session.h"
#include "runtime/result.h"
#include "ui/data/roofline_data.h"
#include "ui/feeds/engine_feed.h"
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
  // Measures kernels for the roofline, while no engine uses the session's runner; given by the
  // command, because that code is the benchmark's. May be empty.
  using Measure = std::function<Result<RooflineData>(Session&)>;
  explicit EngineHost(Measure measure);
  // Waits for whatever loads or runs.
  ~EngineHost();
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  // Lets go of the engine there is, and opens another. What goes wrong is in view().failure. While
  // another one is still being loaded, nothing happens but that.
  void open(ModelChoice choice);
  void start_demo();
  void connect(const std::string& url, const std::string& api_key);

  // Once a frame: takes what has been loaded, polls the feed.
  void update();
  const EngineView& view() const { return view_; }

  // Null while loading, after a failure, and for a remote engine.
  Engine* engine() const { return engine_; }
  // Null for the demo and a remote engine, too.
  Session* session() const { return session_.get(); }
  const ModelChoice& choice() const { return choice_; }
  bool is_demo() const { return demo_ != nullptr; }

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

  // A file that was dragged onto the window, for the panel that opens models.
  void drop(std::string path) { dropped_ = std::move(path); }
  bool has_dropped() const { return !dropped_.empty(); }
  std::string take_dropped() { return std::exchange(dropped_, {}); }

  void pause(bool paused);
  void set_pace(double steps_per_s);

 private:
  // Something that takes long, on a thread of its own.
  struct Job;
  // What --demo shows.
  struct Demo;

  bool busy() const { return job_ != nullptr; }
  void close_engine();
  void finish_job();
  void show_session();
  void show(Engine& engine, EngineFacts facts);

  Measure measure_;
  std::string dropped_;
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
