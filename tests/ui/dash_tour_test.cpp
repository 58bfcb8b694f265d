// Tours through the dashboard: all panels, a lesson, a comparison, the past and a recording.
#include <algorithm>

#include "tests/support/dash_test.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

// What people watch who try the dashboard: with a real model, through all panels.
TEST_F(DashTest, ATourVisitsEveryPanel) {
  const Finished result = play(tour("tour.txt"), {"-m", kSmallModel});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* picture : {"simple", "chat", "dashboard", "static", "past", "requests", "lesson",
                              "models", "roofline", "light"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / fmt::format("{}.png", picture))) << picture;
  EXPECT_GT(values("values.json")["roofline.read_bytes_per_s"].get<double>(), 1e8);
}

// From the list to the answer; the record of it is there again the next time.
TEST_F(DashTest, ALessonIsPredictedRunAndRemembered) {
  const std::string script = tour("lesson_tour.txt");
  const Finished result = play(script, {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(values("lesson.json")["lessons.measured"].get<double>(), 7, 2);
  // A lesson that is opened from the command line has the engine for itself.
  const Finished again = play(
      "wait lessons.front == 1 20\n"
      "expect lessons.open == paging\n"
      "expect lessons.completed == 1\n"
      "frames 20\n"
      "expect control.sent == 0\n",
      {"--demo", "--lesson", "paging"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

// Two policies side by side, the past, and a recording that is opened without an engine.
TEST_F(DashTest, PoliciesAreComparedAndStepsRecorded) {
  std::string script = tour("compare_tour.txt");
  const std::string recording = (folder_ / "recording.json").string();
  script += "click \"Save...\"\nframes 3\nclick \"##recording file\"\nkey Ctrl+A\ntype \"" +
            recording + "\"\nclick \"Save recording\"\nframes 3\n";
  const Finished result = play(script, {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_TRUE(std::filesystem::exists(recording));
  const Finished shown = play(
      "wait timeline.past > 0 20\n"
      "expect dashboard.connected == 1\n"
      "expect timeline.rows > 0\n"
      "expect kv.blocks == 192\n"
      "values recorded.json\n"
      "click \"Step back\"\n"
      "frames 3\n"
      "values earlier.json\n",
      {"--recording", recording});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(values("earlier.json")["timeline.steps"].get<double>(),
            values("recorded.json")["timeline.steps"].get<double>() - 1);

  std::filesystem::resize_file(recording, 1000);
  const Finished cut = play("frames 1\n", {"--recording", recording});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.err, HasSubstr("is not a recording: it is damaged or cut off"));
  EXPECT_EQ(std::ranges::count(cut.err, '\n'), 1) << cut.err;
}

// On a real device both sides run on one pool, one after the other, and are played on one clock.
TEST_F(DashTest, PoliciesAreComparedOnTheDevice) {
  const Finished result = play(
      "wait compare.done == 1 300\n"
      "expect compare.simulated == 0\n"
      "click \"To the end\"\n"
      "wait compare.first_finished == 8 10\n"
      "expect compare.second_finished == 8\n"
      "expect compare.first_padding_share > 0.05\n"
      "expect compare.second_padding_share == 0\n"
      "expect compare.words contains \"static computed\"\n"
      "expect compare.failure == \"\"\n"
      "values compared.json\n"
      // The engine that was paused meanwhile can be used again.
      "click \"Close comparison\"\n"
      "wait timeline.visible == 1 10\n"
      "wait chat.ready == 1 60\n"
      "click \"Burst\"\n"
      "wait control.answered == 8 120\n",
      {"-m", kSmallModel, "--view", "engine", "--compare", "static,continuous", "--requests",
       "synthetic:rate=200,n=8,prompt=8..48,gen=4..24,seed=3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto compared = values("compared.json");
  EXPECT_GT(compared["compare.first_steps"].get<double>(), 0);
  EXPECT_GT(compared["compare.second_seconds"].get<double>(), 0);
}

}  // namespace
}  // namespace hearth::testing
