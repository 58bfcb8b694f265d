// The dashboard as a user sees it: played by scripts under Xvfb with validation layers on. What the
// panels show is read from the values they report.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <unistd.h>

#include "tests/support/display.h"
#include "tests/support/hearth_program.h"
#include "tests/support/serving.h"
#include "tools/lessons/lesson_library.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

const std::string kDashModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class DashTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { display_ = std::make_unique<Display>(); }
  static void TearDownTestSuite() { display_.reset(); }

  void SetUp() override {
    if (display_->name().empty()) GTEST_SKIP() << "Xvfb is not installed";
    folder_ = std::filesystem::path(::testing::TempDir()) /
              fmt::format("hearth_dash_{}_{}", getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs the dashboard with a script. Settings and conversations are saved in the test's folder.
  Finished play(const std::string& script, std::vector<std::string> arguments) {
    const std::filesystem::path file = folder_ / "script.txt";
    std::ofstream(file) << script;
    arguments.insert(arguments.begin(), "dash");
    for (const std::string& one :
         {std::string("--script"), file.string(), std::string("--output"), folder_.string(),
          std::string("--state"), (folder_ / "state").string(), std::string("--fps"),
          std::string("30"), std::string("--validate")})
      arguments.push_back(one);
    return hearth(arguments, {"DISPLAY=" + display_->name(), "WAYLAND_DISPLAY="});
  }

  nlohmann::json values(const std::string& file) const {
    std::ifstream in(folder_ / file);
    return nlohmann::json::parse(in, nullptr, false);
  }

  static std::unique_ptr<Display> display_;
  std::filesystem::path folder_;
};

std::unique_ptr<Display> DashTest::display_;

// The picture's bytes, three per pixel; none if it cannot be read.
std::vector<unsigned char> read_picture(const std::filesystem::path& path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) return {};
  image.format = PNG_FORMAT_RGB;
  std::vector<unsigned char> bytes(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, bytes.data(), 0, nullptr) == 0) return {};
  return bytes;
}

TEST(DashWithoutDisplay, FailsWithOneLine) {
  const Finished result = hearth({"dash", "--demo"}, {"DISPLAY=", "WAYLAND_DISPLAY="});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no display"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

// The CPU's own drawing, in a window in which nothing moves, compared with Vulkan's.
TEST_F(DashTest, TheHostDrawsWhatVulkanDraws) {
  const std::string still = "wait dashboard.failure contains nowhere.gguf 20\nframes 3\n";
  ASSERT_EQ(play(still + "screenshot host.png\n", {"-m", "nowhere.gguf"}).exit_code, 0);
  ASSERT_EQ(
      play(still + "screenshot vulkan.png\n", {"-m", "nowhere.gguf", "--always-vulkan"}).exit_code,
      0);
  const auto host = read_picture(folder_ / "host.png");
  const auto vulkan = read_picture(folder_ / "vulkan.png");
  ASSERT_FALSE(host.empty());
  ASSERT_EQ(host.size(), vulkan.size());
  size_t different = 0;
  for (size_t i = 0; i < host.size(); ++i) different += std::abs(host[i] - vulkan[i]) > 8;
  EXPECT_LT(different, host.size() / 2000);
}

TEST_F(DashTest, EveryPanelShowsWhatTheEngineDoes) {
  const Finished result = play(
      "wait control.load == 1 20\n"
      "wait requests.rows > 3 30\n"
      "wait latency.ttft_count > 2 30\n"
      "click \"Pause\"\n"
      "wait control.paused == 1 10\n"
      "frames 40\n"
      "values paused.json\n"
      "click \"Step once\"\n"
      "frames 30\n"
      "values stepped.json\n",
      {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto paused = values("paused.json"), stepped = values("stepped.json");
  const auto number = [](const nlohmann::json& reply, const char* name) {
    return reply.contains(name) ? reply[name].get<double>() : -1;
  };
  // Exactly one more step, and all panels agree.
  EXPECT_EQ(number(stepped, "timeline.steps"), number(paused, "timeline.steps") + 1);
  EXPECT_GT(number(paused, "timeline.rows"), 0);
  EXPECT_EQ(number(paused, "kv.blocks"), 192);
  EXPECT_EQ(number(paused, "kv.free") + number(paused, "kv.cached") + number(paused, "kv.owned"),
            192);
  EXPECT_GT(number(paused, "kv.owned"), 0);
  EXPECT_EQ(number(paused, "occupancy.running"),
            number(paused, "requests.prefill") + number(paused, "requests.decode"));
  EXPECT_GT(number(paused, "occupancy.running"), 0);
  EXPECT_GT(number(paused, "latency.tbt_p50_ms"), 0);
  EXPECT_GE(number(paused, "latency.tbt_p99_ms"), number(paused, "latency.tbt_p50_ms"));
}

TEST_F(DashTest, APolicySwitchChangesTheTimeline) {
  const Finished result = play(
      "wait control.load == 1 20\n"
      "wait timeline.decode > 0 20\n"
      "expect timeline.padding == 0\n"
      "click \"static\"\n"
      "wait control.policy == static 10\n"
      "wait timeline.padding > 0 30\n"
      "click \"continuous\"\n"
      "wait control.policy == continuous 10\n"
      "wait timeline.padding == 0 30\n",
      {"--demo"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(DashTest, ChatStreamsFromTheBuiltInModelAndIsSaved) {
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "click \"##message\"\n"
      "type \"Tell me a story about a fox.\"\n"
      "key Enter\n"
      "wait chat.tokens > 5 60\n"
      "expect chat.answering == 1\n"
      "expect occupancy.running == 1\n"
      "wait chat.answering == 0 120\n"
      "expect chat.last_finish == stop\n"
      "expect chat.last_question contains fox\n"
      "values first.json\n",
      {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string answer = values("first.json")["chat.last_answer"].get<std::string>();
  EXPECT_GT(answer.size(), 40u) << answer;

  const Finished again = play("wait chat.messages == 2 20\nvalues second.json\n", {"--demo"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(values("second.json")["chat.last_answer"], answer);
}

// Escape stops the answer but keeps the draft, and text outside the BMP can be typed.
TEST_F(DashTest, TextTypedDuringAnAnswerStays) {
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "click \"##message\"\n"
      "type \"Tell me a story about a \U0001F98A.\"\n"
      "key Enter\n"
      "wait chat.tokens > 3 60\n"
      "type \"And what came next\"\n"
      "key Escape\n"
      "wait chat.answering == 0 20\n"
      "expect chat.draft == \"And what came next\"\n"
      "values typed.json\n",
      {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(values("typed.json")["chat.last_question"], "Tell me a story about a \U0001F98A.");
}

TEST_F(DashTest, ReasoningIsFoldedAndCallsAreShown) {
  std::filesystem::create_directories(folder_ / "state/chats");
  const std::string answer =
      "<think>I need a tool.</think>Let me look.<tool_call>{\"name\": \"weather\", \"arguments\": "
      "{\"city\":\"Rome\"}}</tool_call>";
  const nlohmann::json token_texts = {"<think>", "I need", " a tool.", "</think>", "Let me look."};
  nlohmann::json tokens = nlohmann::json::array();
  for (const auto& text : token_texts)
    tokens.push_back({tokens.size(), text, 1, nlohmann::json::array()});
  const nlohmann::json form = {{"calls", "hermes"}, {"reasoning", "<think>"}};
  const nlohmann::json messages = {
      {{"role", "user"}, {"content", "Is it warm in Rome?"}},
      {{"role", "assistant"}, {"content", answer}, {"form", form}, {"tokens", tokens}}};
  std::ofstream(folder_ / "state/chats/20260101-120000-1.json")
      << nlohmann::json{{"title", "Weather"}, {"messages", messages}};
  const Finished result = play(
      // The demo gives the chat no space until it is asked for.
      "wait dashboard.connected == 1 20\n"
      "expect chat.visible == 0\n"
      "click \"View\"\n"
      "click \"Chat\"\n"
      "wait chat.visible == 1 10\n"
      "key Escape\n"
      "wait chat.messages == 2 20\n"
      "wait chat.calls == 1 10\n"
      "expect chat.reasoning_tokens == 2\n"
      "expect chat.reasoning_shown == 0\n"
      "expect chat.last_call contains \"city\"\n"
      "hover \"token 4\"\n"
      "wait chat.hovered_token contains look 10\n"
      "click \"reasoning 0.0\"\n"
      "wait chat.reasoning_shown == 1 10\n"
      "hover \"token 2\"\n"
      "wait chat.hovered_token contains tool 10\n"
      "click \"reasoning 0.0\"\n"
      "wait chat.reasoning_shown == 0 10\n",
      {"--demo"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The simple view is the first thing a user sees; what was chosen last is remembered.
TEST_F(DashTest, TheEngineIsOneClickAway) {
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "expect dashboard.view == simple\n"
      "expect timeline.front == 0\n"
      "click \"Show the engine\"\n"
      "wait dashboard.view == engine 10\n"
      "wait timeline.front == 1 10\n"
      "key Ctrl+E\n"
      "wait dashboard.view == simple 10\n"
      "key Ctrl+E\n"
      "wait dashboard.view == engine 10\n",
      {"-m", kDashModel});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Finished again =
      play("wait chat.ready == 1 60\nexpect dashboard.view == engine\n", {"-m", kDashModel});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(DashTest, ALayoutCanBeChangedSavedAndUsedAgain) {
  const Finished result = play(
      "wait dashboard.connected == 1 20\n"
      "expect latency.region == bottom_left\n"
      "right-click \"Latency\"\n"
      "click \"Left\"\n"
      "wait latency.region == left 10\n"
      "click \"View\"\n"
      "hover \"My layouts\"\n"
      "click \"##layout name\"\n"
      "type \"mine\"\n"
      "click \"Save layout\"\n"
      "key Escape\n"
      "key Escape\n"
      "click \"View\"\n"
      "click \"Classroom\"\n"
      "wait kv.visible == 0 10\n"
      "expect latency.region == bottom_left\n"
      "expect dashboard.zoom == 1.5\n"
      "click \"View\"\n"
      "hover \"My layouts\"\n"
      "hover \"mine\"\n"
      "click \"Use\"\n"
      "wait latency.region == left 10\n"
      "expect kv.visible == 1\n"
      "expect dashboard.zoom == 1\n",
      {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Finished again = play("wait latency.region == left 10\n", {"--demo"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(DashTest, ADroppedTextFileIsAttachedAndFoundBySearch) {
  std::ofstream(folder_ / "notes.txt") << "a kite in the harbour\n";
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "drop " +
          (folder_ / "notes.txt").string() +
          "\n"
          "wait chat.draft contains harbour 10\n"
          "expect models.front == 0\n"
          "click \"Send\"\n"
          "wait chat.tokens > 3 60\n"
          "key Ctrl+F\n"
          "wait chat.found == 0 10\n"
          "type \"HARBOUR\"\n"
          "wait chat.found == 1 10\n",
      {"-m", kDashModel});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// Single steps, so that the answer cannot end before the window closes.
TEST_F(DashTest, ClosingInMidGenerationEndsCleanly) {
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "click \"Pause\"\n"
      "wait control.paused == 1 10\n"
      "click \"##message\"\n"
      "type \"Tell me a long story.\"\n"
      "key Enter\n"
      "wait chat.answering == 1 10\n"
      "click \"Step once\"\n"
      "wait chat.tokens > 0 60\n"
      "click \"Step once\"\n"
      "wait chat.tokens > 1 60\n"
      "expect chat.answering == 1\n"
      "click \"Resume\"\n"
      "close\n",
      {"-m", kDashModel, "--view", "engine"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.err.empty()) << result.err;
}

TEST_F(DashTest, HiddenPanelsAndColoursAreRemembered) {
  const Finished hide = play(
      "click \"View\"\n"
      "click \"Latency\"\n"
      "wait latency.visible == 0 10\n"
      "key Escape\n"
      "click \"View\"\n"
      "click \"Light\"\n"
      "wait dashboard.dark == 0 10\n",
      {"--demo"});
  ASSERT_EQ(hide.exit_code, 0) << hide.err;
  const Finished again =
      play("expect latency.visible == 0\nexpect dashboard.dark == 0\n", {"--demo"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(DashTest, TheGlossaryOpensFromTheMenuAndCanBeSearched) {
  const Finished result = play(
      "expect dashboard.glossary_shown == 0\n"
      "click \"Help\"\n"
      "click \"Glossary\"\n"
      "wait dashboard.glossary_shown > 50 10\n"
      "type \"time to first token\"\n"
      "wait dashboard.glossary_shown < 5 10\n"
      "expect dashboard.glossary_shown > 0\n",
      {"--demo"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(DashTest, AFailingScriptStepIsReportedWithItsLine) {
  const Finished result =
      play("wait dashboard.connected == 1 20\nexpect timeline.rows == 12345\n", {"--demo"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("script.txt:2: timeline.rows is "));
  const Finished missing = play("click \"No such button\" 1\n", {"--demo"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("no visible widget is labelled \"No such button\""));
}

TEST_F(DashTest, ADroppedModelIsEstimatedLoadedAndMeasured) {
  const Finished result = play(
      "wait dashboard.connected == 1 20\n"
      "drop " +
          kDashModel +
          "\n"
          "wait models.front == 1 20\n"
          "wait models.estimated == 1 60\n"
          "expect models.model contains hearth-tiny\n"
          "expect models.fits == 1\n"
          "expect dashboard.source contains demo\n"
          "scroll \"Built-in model\" -40\n"
          "click \"Load model\"\n"
          "wait chat.ready == 1 60\n"
          "expect dashboard.source contains hearth-tiny\n"
          "click \"Roofline\"\n"
          "expect roofline.dots == 0\n"
          "click \"Measure\"\n"
          "wait roofline.dots > 5 120\n"
          "wait chat.ready == 1 20\n"
          "values all.json\n",
      {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto all = values("all.json");
  // The estimate is close to the memory that is really used.
  const double used = all["occupancy.memory_bytes"].get<double>();
  EXPECT_NEAR(all["models.total_bytes"].get<double>(), used, 0.05 * used);
  EXPECT_GT(all["roofline.read_bytes_per_s"].get<double>(), 1e8);
}

// Chat, synthetic requests and another policy on a server, from the dashboard.
TEST_F(DashTest, AServerIsChattedWithAndControlled) {
  const Serving server({"--api-key", "k", "--control", "--max-seqs", "4"});
  ASSERT_NE(server.port(), 0) << server.log();
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  const Finished result = play(
      "wait dashboard.connected == 1 20\n"
      "wait chat.ready == 1 10\n"
      "click \"##message\"\n"
      "type \"Tell me a story about a fox.\"\n"
      "key Enter\n"
      "wait chat.tokens > 5 60\n"
      "wait chat.answering == 0 120\n"
      "expect chat.last_error == \"\"\n"
      "hover \"token 3\"\n"
      "wait chat.hovered_token != \"\" 10\n"
      "wait timeline.steps > 5 20\n"
      "click \"static\"\n"
      "wait control.policy == static 10\n"
      "click \"Burst\"\n"
      "wait control.ended == 8 120\n"
      "click \"Pause\"\n"
      "wait control.paused == 1 10\n"
      "values server.json\n",
      {"--connect", url, "--api-key", "k"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(values("server.json")["chat.last_answer"].get<std::string>().size(), 20u);
  // Steps from before this connection are there, although nothing runs any more.
  const Finished again = play(
      "wait timeline.steps > 5 20\n"
      "wait control.paused == 1 10\n",
      {"--connect", url, "--api-key", "k"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(DashTest, AModelThatCannotBeOpenedIsReportedInTheWindow) {
  const Finished result = play(
      "wait dashboard.failure contains nowhere.gguf 20\n"
      "expect dashboard.connected == 0\n",
      {"-m", "nowhere.gguf"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// From the list to the answer; the record of it is there again the next time.
TEST_F(DashTest, ALessonIsPredictedRunAndRemembered) {
  std::ifstream tour(HEARTH_SOURCE_DIR "/tests/ui/lesson_tour.txt");
  const std::string script{std::istreambuf_iterator<char>(tour), std::istreambuf_iterator<char>()};
  const Finished result = play(script, {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(values("lesson.json")["lessons.measured"].get<double>(), 7, 2);
  // A lesson that is opened from the command line has the engine for itself.
  const Finished again = play(
      "wait lessons.front == 1 20\n"
      "expect lessons.open == paging\n"
      "expect lessons.completed == 1\n"
      "frames 20\n"
      "expect control.submitted == 0\n",
      {"--demo", "--lesson", "paging"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

// Each is opened, predicted and run. Those that the demo's engine cannot run are simulated.
TEST_F(DashTest, EveryLessonHasATour) {
  const Result<std::vector<Lesson>> lessons = all_lessons();
  ASSERT_TRUE(lessons.ok()) << lessons.error().message;
  ASSERT_GE(lessons->size(), 15u);
  for (const Lesson& lesson : *lessons) {
    const Finished result = play(
        "wait lessons.front == 1 20\n"
        "scroll \"All lessons\" -100\n"
        "click \"choice a\"\n"
        "wait lessons.prediction == a 10\n"
        "click \"Run the experiment\"\n"
        "wait lessons.done == 1 120\n"
        "expect lessons.failure == \"\"\n"
        "frames 3\n"
        "screenshot answer.png\n",
        {"--demo", "--lesson", lesson.name});
    EXPECT_EQ(result.exit_code, 0) << lesson.name << ": " << result.err;
  }
}

// Two policies side by side, the past, and a recording that is opened without an engine.
TEST_F(DashTest, PoliciesAreComparedAndStepsRecorded) {
  std::ifstream tour(HEARTH_SOURCE_DIR "/tests/ui/compare_tour.txt");
  std::string script{std::istreambuf_iterator<char>(tour), std::istreambuf_iterator<char>()};
  const std::string recording = (folder_ / "recording.json").string();
  script += "click \"Record...\"\nframes 3\nclick \"##recording file\"\nkey Ctrl+A\ntype \"" +
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
      "click \"Back\"\n"
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

TEST(DashWithoutDisplay, AnUnknownPolicyToCompareIsAUsageError) {
  const Finished result = hearth({"dash", "--demo", "--compare", "static,continous"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean continuous?"));
}

TEST(DashWithoutDisplay, AnUnknownLessonIsAUsageError) {
  const Finished result = hearth({"dash", "--demo", "--lesson", "pagin"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean paging?"));
}

}  // namespace
}  // namespace hearth::testing
