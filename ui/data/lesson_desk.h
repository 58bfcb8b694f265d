// The Lessons panel's data: the list of lessons with what was done, the open lesson, the
// prediction, its run and its outcome. Call only from the window's thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/lessons/lesson.h"
#include "tools/lessons/lesson_results.h"
#include "ui/data/background_task.h"
#include "ui/data/lesson_player.h"

namespace hearth {

class LessonDesk {
 public:
  // How lessons ended, by name: "right", "wrong" or "done" (without a prediction).
  using Record = std::map<std::string, std::string>;

  // Reads the lessons of the program.
  LessonDesk();

  const std::vector<Lesson>& lessons() const { return lessons_; }
  Record record;
  size_t completed() const;  // lessons of the program with an entry

  // Opens a lesson by name, or a file as `hearth lesson` takes it. A lesson that runs is left
  // first. Returns what is wrong; empty: it is open.
  std::string open(const std::string& name, const LessonStage& stage);
  void close(const LessonStage& stage);
  const Lesson* current() const { return current_ ? &*current_ : nullptr; }
  const Lesson* next() const;  // null: the open one is the last

  char prediction = 0;  // 0: none
  // Live if possible, otherwise on the modelled device in virtual time.
  void run(const LessonStage& stage);
  void stop(const LessonStage& stage) { player_.stop(stage); }
  void update(const LessonStage& stage, bool slowed);

  bool running() const { return player_.running() || simulation_.busy(); }
  std::string status() const;
  double progress() const { return player_.progress(); }
  const std::string& failure() const { return failure_; }
  // Why the last run was not live; empty: it was.
  const std::string& not_live() const { return not_live_; }
  const LessonResults* results() const { return results_ ? &*results_ : nullptr; }
  const LessonAnswer* answer() const { return answer_ ? &*answer_ : nullptr; }
  char answered() const { return answered_; }  // the prediction when it was run

 private:
  void take(Result<LessonResults> results);
  void forget();

  std::vector<Lesson> lessons_;
  std::optional<Lesson> current_;
  LessonPlayer player_;
  BackgroundTask<Result<LessonResults>> simulation_;
  bool drop_simulation_ = false;  // its lesson was left
  std::string failure_, not_live_;
  std::optional<LessonResults> results_;
  std::optional<LessonAnswer> answer_;
  char answered_ = 0;
};

}  // namespace hearth
