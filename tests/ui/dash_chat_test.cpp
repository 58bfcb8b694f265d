// The dashboard with a model: chat, loading, and a server.
#include <fstream>

#include "tests/support/dash_test.h"
#include "tests/support/serving.h"
#include "tests/support/tls_proxy.h"

namespace hearth::testing {
namespace {

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

// Escape stops the answer but keeps the draft, and text outside the BMP can be typed. In slow
// motion, so that the answer does not end by itself.
TEST_F(DashTest, TextTypedDuringAnAnswerStays) {
  const Finished result = play(
      "wait chat.ready == 1 60\n"
      "click \"Slow motion\"\n"
      "wait control.pace > 0 10\n"
      "click \"##message\"\n"
      "type \"Tell me a story about a \U0001F98A.\"\n"
      "key Enter\n"
      "wait chat.tokens > 0 60\n"
      "type \"And what came next\"\n"
      "key Escape\n"
      "wait chat.answering == 0 20\n"
      "expect chat.draft == \"And what came next\"\n"
      "values typed.json\n",
      {"-m", kSmallModel, "--view", "engine"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(values("typed.json")["chat.last_question"], "Tell me a story about a \U0001F98A.");
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
      {"-m", kSmallModel});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Finished again =
      play("wait chat.ready == 1 60\nexpect dashboard.view == engine\n", {"-m", kSmallModel});
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
      {"-m", kSmallModel});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The button is above the code, and copies it without the fence.
TEST_F(DashTest, ABlockOfCodeIsCopied) {
  std::filesystem::create_directories(folder_ / "state/chats");
  const nlohmann::json messages = {
      {{"role", "user"}, {"content", "Write a function."}},
      {{"role", "assistant"},
       {"content", "Here it is:\n\n```python\ndef f(x):\n    return 2 * x\n```\n"}}};
  std::ofstream(folder_ / "state/chats/20260101-120000-1.json")
      << nlohmann::json{{"title", "Code"}, {"messages", messages}};
  const Finished result = play(
      "wait chat.messages == 2 20\n"
      "click \"Copy code\"\n"
      "click \"##message\"\n"
      "key Ctrl+V\n"
      "wait chat.draft == \"def f(x):\\n    return 2 * x\" 10\n",
      {"-m", kSmallModel});
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
      {"-m", kSmallModel, "--view", "engine"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.err.empty()) << result.err;
}

TEST_F(DashTest, ADroppedModelIsEstimatedAndLoaded) {
  const Finished result = play(std::string("wait dashboard.connected == 1 20\n"
                                           "drop ") +
                                   kSmallModel +
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
                                   "values all.json\n",
                               {"--demo"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto all = values("all.json");
  // The estimate is close to the memory that is really used.
  const double used = all["occupancy.memory_bytes"].get<double>();
  EXPECT_NEAR(all["models.total_bytes"].get<double>(), used, 0.05 * used);
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
      "wait control.answered == 8 120\n"
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

// The same through a proxy with TLS: only with a certificate that is trusted.
TEST_F(DashTest, AServerBehindTlsIsChattedWithAndControlled) {
  const Serving server({"--api-key", "k", "--control", "--max-seqs", "4"});
  ASSERT_NE(server.port(), 0) << server.log();
  const TlsProxy proxy(server.port(), folder_);
  if (!proxy.installed()) GTEST_SKIP() << "haproxy or openssl is not installed";
  ASSERT_TRUE(proxy.runs());
  const std::vector<std::string> arguments = {"--connect", proxy.url(), "--api-key", "k"};
  const Finished unknown = play(
      "wait dashboard.failure contains \"certificate is not trusted\" 20\n"
      "expect dashboard.failure contains SSL_CERT_FILE\n"
      "expect dashboard.connected == 0\n",
      arguments, "unknown");
  EXPECT_EQ(unknown.exit_code, 0) << unknown.err;
  setenv("SSL_CERT_FILE", proxy.certificate().c_str(), 1);
  const Finished result = play(
      "wait dashboard.connected == 1 20\n"
      "wait chat.ready == 1 10\n"
      "click \"##message\"\n"
      "type \"Tell me a story about a fox.\"\n"
      "key Enter\n"
      "wait chat.tokens > 5 60\n"
      "wait chat.answering == 0 120\n"
      "expect chat.last_error == \"\"\n"
      "click \"static\"\n"
      "wait control.policy == static 10\n"
      "click \"Pause\"\n"
      "wait control.paused == 1 10\n",
      arguments, "trusted");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  // The history of before this connection.
  const Finished again = play("wait timeline.steps > 5 20\n", arguments, "again");
  unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

}  // namespace
}  // namespace hearth::testing
