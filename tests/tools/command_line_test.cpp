// The program as a user starts it: what it prints, where it prints it, and how it ends.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CommandLine, DevicesNamesTheChosenOne) {
  const Finished result = hearth({"devices"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(chosen)"));
}

TEST(CommandLine, EmptyNamesAndPromptsAreRefused) {
  for (const auto& [arguments, reason] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"run", "-f", ""}, "the file name is empty"},
           {{"template", "-f", ""}, "the file name is empty"},
           {{"template", "--messages", ""}, "the file name is empty"},
           {{"run", ""}, "the prompt is empty"}}) {
    const Finished result = hearth(arguments);
    EXPECT_NE(result.exit_code, 0);
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr(reason));
  }
}

TEST(CommandLine, NoCommandDoesSomethingUseful) {
  const Finished result = hearth({}, {"DISPLAY=", "WAYLAND_DISPLAY="});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.out.empty());
}

TEST(CommandLine, DevicesJsonHasWhatScriptsRelyOn) {
  const Finished result = hearth({"devices", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  ASSERT_FALSE(json["devices"].empty());
  int chosen = 0;
  for (const auto& device : json["devices"]) {
    for (const char* key : {"index", "name", "type", "driver", "api", "memory_bytes", "free_bytes",
                            "subgroup", "features", "chosen", "refused"})
      EXPECT_TRUE(device.contains(key)) << key;
    EXPECT_GT(device["memory_bytes"].get<uint64_t>(), 0u);
    chosen += device["chosen"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(chosen, 1);
}

TEST(CommandLine, BenchKernelsJsonHasWhatScriptsRelyOn) {
  const Finished result = hearth({"bench", "--kernels", "--json", "--filter", "rms_norm"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  EXPECT_GT(json["ceilings"]["read_bytes_per_s"].get<double>(), 0);
  EXPECT_GT(json["ceilings"]["flops_per_s"].get<double>(), 0);
  ASSERT_FALSE(json["kernels"].empty());
  for (const auto& kernel : json["kernels"]) {
    for (const char* key :
         {"kernel", "variant", "shape", "seconds", "bytes_per_s", "flops_per_s", "share"})
      EXPECT_TRUE(kernel.contains(key)) << key;
    EXPECT_GT(kernel["seconds"].get<double>(), 0);
  }
}

TEST(CommandLine, AWrongWordIsAUsageErrorInOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"frobnicate"},
        {"devices", "--frobnicate"},
        {"run"},
        {"run", "a", "-p", "b"},
        {"run", "-p", "a", "-f", "b"},
        {"run", "Once", "upon", "a", "time"},
        {"run", "model.gguf"},
        {"run", "x", "-ngl", "99"},
        {"run", "x", "-m", ""},
        {"-m", "model.gguf"},
        {"pull", "llama3"},
        {"bench", "--filter", "x"},
        {"serve", "--port", "70000"},
        {"serve", "--api-key", ""},
        {"serve", "--max-seqs", "0"},
        {"serve", "--max-queue", "0"},
        {"serve", "--policy", "best"},
        {"info", "--max-step-tokens", "4294967295"},
        {"run", "-p", "x", "--top-p", "2"},
        {"run", "-p", "x", "--temp", "nan"},
        {"run", "-p", "x", "--seed", "-1"},
        {"run", "-p", "x", "--seed", "99999999999999999999"},
        {"run", "-p", "x", "-n", ""},
        {"run", "-p", "x", "-n", "010"},
        {"logits", "--ids", "1,007"},
        {"run", "-p", "x", "--swap", "-1"},
        {"logits", "--ids", ""},
        {"bench", "-p", "4294967295"},
        {"serve", "--max-body", "-1"},
        {"serve", "--time-limit", "-1"},
        {"run", "-p", "x", "--logprobs", "3"},
        {"run", "-p", "x", "--system", "y"},
        {"detokenize", "one"},
        {"devices", "-d"}}) {
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0];
    expect_one_line(result.err);
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(CommandLine, ADeviceThatIsNotThereIsAFailureInOneLine) {
  const Finished result = hearth({"bench", "--kernels", "-d", "no such card"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr("no such card"));
}

TEST(CommandLine, NothingToTimeIsAFailureInOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bench", "--kernels", "--filter", "no such family"},
        {"bench", "-p", "0", "-n", "0"}}) {
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result.err);
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(CommandLine, ADeviceThatIsNotThereHasNoFacts) {
  const Finished result = hearth({"info", "-d", "no such card"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
}

// Starts it through a shell, which can close and redirect its standard streams.
Finished in_shell(const std::string& command) {
  return run_program({"/bin/sh", "-c", "\"$0\" \"$1\" " + command, HEARTH_LAUNCHER, HEARTH_BINARY});
}

TEST(CommandLine, WhatCannotBePrintedIsAFailureInOneLine) {
  for (const char* command : {"--version >/dev/full", "--help >/dev/full",
                              "tokenize hello >/dev/full", "tokenize hello >&-"}) {
    const Finished result = in_shell(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("standard output")) << command;
  }
}

TEST(CommandLine, WhatCannotBeReadIsAFailureInOneLine) {
  for (const char* command : {"tokenize </", "tokenize --file /proc/self/mem"}) {
    const Finished result = in_shell(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("cannot read")) << command;
  }
  // A closed standard input is empty; a file that a driver opened must not be read instead.
  EXPECT_EQ(in_shell("chat -n 1 <&-").exit_code, 0);
}

TEST(CommandLine, AnEndlessFileIsAFailureInOneLine) {
  for (const char* command :
       {"run -f /dev/zero", "tokenize --file /dev/zero", "tokenize </dev/zero",
        "perplexity -f /dev/zero", "template -f /dev/zero", "chat --load /dev/zero </dev/null"}) {
    const Finished result = in_shell(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("is too large: at most 256 MiB")) << command;
  }
}

TEST(CommandLine, ControlCharactersFromFilesAreEscaped) {
  const std::string folder = ::testing::TempDir() + "/hearth_escapes_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/evil\x1b[31m\n.gguf") << "GGUF";
  const std::string models = "HEARTH_MODELS=" + folder;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list"}, {"info", "-m", "evil"}, {"frob\x1b[31m"}}) {
    const Finished result = hearth(arguments, {models});
    EXPECT_THAT(result.out + result.err, HasSubstr("\\x1b[31m")) << arguments[0];
    EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b"))) << arguments[0];
  }
  std::filesystem::remove_all(folder);
}

TEST(CommandLine, APartialTraceIsRemovedWhenTheDiskIsFull) {
  const std::string path = ::testing::TempDir() + "/hearth_full_" + std::to_string(getpid());
  const Finished result =
      run_program({"/bin/sh", "-c", "ulimit -f 20; exec \"$@\"", "sh", HEARTH_LAUNCHER,
                   HEARTH_BINARY, "replay", "--simulate", "synthetic:n=50", "--trace", path});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr("the unfinished file was removed"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CommandLine, ClampedSizesAreSaid) {
  const std::string tiny = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";
  const Finished run = hearth({"run", "-m", tiny, "-n", "1", "-c", "5000", "Once"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--ctx 5000 is more than the model's 1024 tokens; using 1024"));
  const Finished info = hearth({"info", "-m", tiny, "--kv-blocks", "4000000000"});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("--kv-blocks 4000000000 is more than fits; using "));
}

TEST(CommandLine, AnEmptyFolderIsAFailureInOneLine) {
  const std::string folder = ::testing::TempDir() + "/hearth_empty_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const Finished result = hearth({"run", "-m", folder, "Once"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr("neither a .gguf file nor a config.json"));
  std::filesystem::remove(folder);
}

struct Suggestion {
  std::vector<std::string> arguments;
  const char* text;
};

TEST(CommandLine, ErrorsSayWhatToDoInstead) {
  for (const Suggestion& item :
       {Suggestion{{"rnu"}, "unknown command 'rnu'; did you mean run?"},
        {{"sevre"}, "did you mean serve?"},
        {{"server"}, "hearth serve"},
        {{"pull", "llama3"}, "hearth list"},
        {{"-m", "model.gguf"}, "options go after the command"},
        {{"run", "--temprature", "1", "x"}, "did you mean --temp?"},
        {{"run", "--temperature", "-1", "x"}, "--temp: "},
        {{"chat", "--ctx-size", "x"}, "--ctx: "},
        {{"quantize", "a.gguf"}, "missing argument OUT"},
        {{"perplexity"}, "missing option --file FILE"},
        {{"info", "--kv", "q3"}, "--kv: unknown value 'q3'; use f16 or q8_0"},
        {{"run", "-ngl", "99", "x"},
         "-ngl: Hearth runs the whole model on one device; choose it with -d (see hearth devices), "
         "or "
         "several with --devices"},
        {{"serve", "-np", "4"}, "--max-seqs"},
        {{"chat", "-t", "8"}, "no threads to set"},
        {{"run"},
         "no prompt: hearth run \"Once upon a time\", -f FILE, or - to read standard input"},
        {{"run", "a", "-p", "b"}, "give only one of PROMPT, --prompt, --file"},
        {{"run", "Once", "upon", "a", "time"}, "put the prompt in quotes"},
        {{"run", "llama.gguf", "Why?"}, "hearth run -m llama.gguf"},
        {{"run", "x", "-m", ""}, "leave -m out for the built-in model"}}) {
    const Finished result = hearth(item.arguments);
    EXPECT_EQ(result.exit_code, 2) << item.text;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr(item.text));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A page that fits a screen.
void expect_page(const Finished& result, size_t most_lines) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.err.empty()) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  EXPECT_GE(lines.size(), 3u);
  EXPECT_LE(lines.size(), most_lines) << result.out;
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Help, FirstPageFitsAScreen) {
  const Finished result = hearth({"--help"});
  expect_page(result, 43);
  for (const char* line :
       {"Hearth runs language models on the GPU you already own.\n",
        "Usage: hearth [COMMAND] [OPTIONS]\n", "\nRun a model:\n", "\nServe and watch:\n",
        "\nMeasure:\n", "\nModel files:\n", "\nExamples:\n", "  run         Complete a prompt\n",
        "  chat        Talk to a model in the terminal\n",
        "  list        List the models that -m finds by name\n",
        "  hearth run \"Once upon a time\"\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_EQ(hearth({"help"}).out, result.out);
  EXPECT_EQ(hearth({"-h"}).out, result.out);
}

TEST(Help, RunFitsAScreen) {
  const Finished result = hearth({"run", "--help"});
  expect_page(result, 43);
  for (const char* line :
       {"Complete a prompt\n", "Usage: hearth run [PROMPT] [OPTIONS]\n", "\nExamples:\n",
        "  hearth run \"Once upon a time\" -n 100\n", "\nArguments:\n", "\nPrompt:\n",
        "\nOutput:\n", "\nModel:\n",
        "\nSampling (default: the model's own settings, else --temp 0.7 --min-p 0.05):\n",
        "  -n, --tokens N              Maximum tokens to generate; 0 lets the model decide\n",
        "  -m, --model MODEL ", "      --min-p P ",
        "Drop tokens less likely than P times the most likely one",
        "hearth run --help-all lists every option.\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_THAT(result.out, Not(HasSubstr("--swap")));
  EXPECT_EQ(hearth({"help", "run"}).out, result.out);
  // Sizes are called sizes.
  EXPECT_THAT(hearth({"run", "--help-all"}).out, HasSubstr("      --swap SIZE "));
}

TEST(Help, EveryCommandHasAPageThatFits) {
  for (const char* command :
       {"bench", "chat", "dash", "detokenize", "devices", "info", "list", "logits", "perplexity",
        "quantize", "replay", "run", "serve", "story", "tokenize"}) {
    SCOPED_TRACE(command);
    const Finished page = hearth({command, "--help"});
    expect_page(page, 45);
    EXPECT_THAT(page.out, HasSubstr(std::string("Usage: hearth ") + command));
    expect_page(hearth({command, "--help-all"}), 125);
  }
}

TEST(CommandLine, Version) {
  const Finished result = hearth({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, StartsWith("hearth "));
}

}  // namespace
}  // namespace hearth::testing
