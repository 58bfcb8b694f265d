#include "ui/data/lesson_desk.h"

#include <algorithm>
#include <utility>

#include "tools/lessons/lesson_library.h"
#include "tools/lessons/lesson_runner.h"

namespace hearth {

LessonDesk::LessonDesk() {
  if (Result<std::vector<Lesson>> lessons = all_lessons(); lessons.ok())
    lessons_ = std::move(*lessons);
  else
    failure_ = lessons.error().message;
}

size_t LessonDesk::completed() const {
  return static_cast<size_t>(std::ranges::count_if(
      lessons_, [&](const Lesson& lesson) { return record.contains(lesson.name); }));
}

void LessonDesk::forget() {
  results_.reset();
  answer_.reset();
  failure_.clear();
  not_live_.clear();
}

void LessonDesk::close(const LessonStage& stage) {
  player_.stop(stage);
  player_.take_results();
  drop_simulation_ = simulation_.busy();
  forget();
  current_.reset();
  prediction = 0;
}

std::string LessonDesk::open(const std::string& name, const LessonStage& stage) {
  Result<Lesson> lesson = find_lesson(name);
  if (!lesson.ok()) return lesson.error().message;
  close(stage);
  current_ = std::move(*lesson);
  return {};
}

const Lesson* LessonDesk::next() const {
  if (!current_) return nullptr;
  const auto place = std::ranges::find_if(
      lessons_, [&](const Lesson& lesson) { return lesson.order > current_->order; });
  return place == lessons_.end() ? nullptr : &*place;
}

void LessonDesk::run(const LessonStage& stage) {
  if (!current_ || running()) return;
  forget();
  answered_ = prediction;
  not_live_ = why_not_live(*current_, stage);
  if (not_live_.empty())
    player_.start(*current_, stage);
  else
    simulation_.start([lesson = *current_] { return run_lesson(lesson, {.simulate = true}); });
}

std::string LessonDesk::status() const {
  return player_.running() ? player_.status() : simulation_.busy() ? "simulating" : std::string();
}

void LessonDesk::update(const LessonStage& stage, bool slowed) {
  player_.update(stage, slowed);
  if (std::optional<Result<LessonResults>> results = player_.take_results())
    take(*std::move(results));
  if (std::optional<Result<LessonResults>> results = simulation_.take())
    if (!std::exchange(drop_simulation_, false)) take(*std::move(results));
}

void LessonDesk::take(Result<LessonResults> results) {
  if (!results.ok()) {
    failure_ = results.error().message;
    return;
  }
  Result<LessonAnswer> answer = answer_of(*current_, *results);
  if (!answer.ok()) {
    failure_ = answer.error().message;
    return;
  }
  results_ = std::move(*results);
  answer_ = std::move(*answer);
  record[current_->name] = answered_ == 0                 ? "done"
                           : answered_ == answer_->letter ? "right"
                                                          : "wrong";
}

}  // namespace hearth
