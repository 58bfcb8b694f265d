// The dashboard's panels and windows, mostly with the demo's engine.
#include "tests/support/dash_test.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <png.h>

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

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
      "wait control.answered > 0 30\n"
      "values moving.json\n"
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
  // All requests of the demo are synthetic ones, so both panels count the same requests.
  for (const nlohmann::json& reply : {values("moving.json"), paused, stepped}) {
    EXPECT_GT(number(reply, "control.answered"), 0);
    EXPECT_EQ(number(reply, "control.answered"), number(reply, "requests.ended"));
  }
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

// Every part of the Control panel can be seen, in small windows and in large type, too.
TEST_F(DashTest, ControlNeedsNoScrolling) {
  const std::vector<std::vector<std::string>> sizes = {
      {"--width", "1280", "--height", "720"},
      {"--width", "1280", "--height", "720", "--view", "class"},
      {"--width", "1600", "--height", "1000"},
      {"--width", "1600", "--height", "1000", "--view", "class"}};
  for (const std::vector<std::string>& size : sizes) {
    std::vector<std::string> arguments = size;
    arguments.emplace_back("--demo");
    const Finished result = play(
        "wait control.load == 1 20\n"
        "expect control.below == 0\n"
        "click \"Slow motion\"\n"
        "wait control.pace > 0 10\n"
        "frames 3\n"
        "expect control.below == 0\n"
        "click \"Load settings\"\n"
        "frames 3\n"
        "expect control.below > 0\n",
        arguments, fmt::format("{}", &size - sizes.data()));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
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

TEST_F(DashTest, AModelThatCannotBeOpenedIsReportedInTheWindow) {
  const Finished result = play(
      "wait dashboard.failure contains nowhere.gguf 20\n"
      "expect dashboard.connected == 0\n",
      {"-m", "nowhere.gguf"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
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
