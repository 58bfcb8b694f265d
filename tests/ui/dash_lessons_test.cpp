// A tour per lesson.
#include <algorithm>
#include <future>

#include "tests/support/dash_test.h"
#include "tools/lessons/lesson_library.h"

namespace hearth::testing {
namespace {

// Each is opened, predicted and run; those that the demo's engine cannot run are simulated. Lessons
// take as long as their requests, so several windows run at a time, drawn rarely while they wait.
TEST_F(DashTest, EveryLessonHasATour) {
  const Result<std::vector<Lesson>> lessons = all_lessons();
  ASSERT_TRUE(lessons.ok()) << lessons.error().message;
  ASSERT_GE(lessons->size(), 15u);
  constexpr size_t kWindows = 5;
  const size_t each = (lessons->size() + kWindows - 1) / kWindows;
  std::vector<std::future<Finished>> windows;
  for (size_t first = 0; first < lessons->size(); first += each) {
    std::string script = "wait lessons.front == 1 20\n";
    const size_t end = std::min(first + each, lessons->size());
    for (size_t i = first; i < end; ++i) {
      if (i > first) script += "scroll \"\" -100\nclick \"Next lesson\"\n";
      script += "wait lessons.open == " + (*lessons)[i].name +
                " 10\n"
                "expect lessons.done == 0\n"
                "scroll \"All lessons\" -100\n"
                "click \"choice a\"\n"
                "wait lessons.prediction == a 10\n"
                "click \"Run the experiment\"\n"
                "rate 5\n"
                "wait lessons.done == 1 120\n"
                "rate 0\n"
                "expect lessons.failure == \"\"\n"
                "frames 3\n";
    }
    script += fmt::format("expect lessons.completed == {}\nscreenshot answer.png\n", end - first);
    windows.push_back(std::async(std::launch::async, [this, script, name = (*lessons)[first].name] {
      return play(script, {"--demo", "--lesson", name}, name);
    }));
  }
  for (std::future<Finished>& window : windows) {
    const Finished result = window.get();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

}  // namespace
}  // namespace hearth::testing
