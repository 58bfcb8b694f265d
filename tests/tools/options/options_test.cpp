// Command lines as they are read: which variables are set, and what users are told.
#include "tools/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/options/help_page.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Values {
  std::string text = "first";
  uint32_t tokens = 7;
  uint64_t seed = 0, swap = 0;
  int port = 8080;
  float share = 0.5f;
  double limit = 1;
  bool json = false, dark = true;
  std::vector<std::string> stops;
  std::vector<uint32_t> batches = {1, 8};
  std::filesystem::path file;
};

// A command with an option of every kind. An Options reads one command line, so each test has its
// own.
struct Example {
  Example() {
    options.add("-p,--prompt TEXT", &values.text, "A text");
    options.add("-n,--tokens N", &values.tokens, "How many").range(0, 4000);
    options.add("--seed N", &values.seed, "Seed");
    options.add("--swap SIZE", &values.swap, "Memory").bytes().range(0, 0x1p50);
    options.add("--port N", &values.port, "Port").range(0, 65535);
    options.add("--share P", &values.share, "Share").range(0, 1);
    options.add("--limit S", &values.limit, "Limit").range(1e-300, 1e9);
    json = &options.add("--json", &values.json, "JSON");
    dark = &options.add("--dark,!--light", &values.dark, "Colours");
    options.add("--stop TEXT", &values.stops, "Stops");
    options.add("--batch LIST", &values.batches, "Batches").separator(',').range(1, 64);
    options.add("--file FILE", &values.file, "File");
  }
  // Empty if all is well.
  std::string error_of(std::vector<std::string> arguments) {
    const Result<Options::Wish> wish = options.parse(arguments);
    return wish.ok() ? std::string() : wish.error().message;
  }

  Values values;
  Options options{"hearth try"};
  const Option *json = nullptr, *dark = nullptr;
};

class OptionsTest : public ::testing::Test, protected Example {};

TEST_F(OptionsTest, SetsVariablesOfEveryKind) {
  EXPECT_EQ(error_of({"-p",     "a fox",   "--tokens=12", "--seed", "18446744073709551615",
                      "--swap", "512MB",   "--port",      "0",      "--share",
                      "0.25",   "--limit", "1e3",         "--json", "--light",
                      "--stop", "a",       "--stop",      "b,c",    "--batch",
                      "2,4",    "--batch", "8",           "--file", "x.txt"}),
            "");
  EXPECT_EQ(values.text, "a fox");
  EXPECT_EQ(values.tokens, 12u);
  EXPECT_EQ(values.seed, UINT64_MAX);
  EXPECT_EQ(values.swap, 512u << 20);
  EXPECT_EQ(values.port, 0);
  EXPECT_FLOAT_EQ(values.share, 0.25f);
  EXPECT_DOUBLE_EQ(values.limit, 1000);
  EXPECT_TRUE(values.json);
  EXPECT_FALSE(values.dark);
  EXPECT_THAT(values.stops, ElementsAre("a", "b,c"));
  EXPECT_THAT(values.batches, ElementsAre(2u, 4u, 8u));
  EXPECT_EQ(values.file, "x.txt");
}

TEST_F(OptionsTest, WithoutArgumentsDefaultsStay) {
  EXPECT_EQ(error_of({}), "");
  EXPECT_EQ(values.tokens, 7u);
  EXPECT_THAT(values.batches, ElementsAre(1u, 8u));
  EXPECT_FALSE(json->given());
}

TEST(Optionals, StayEmptyUnlessGiven) {
  std::optional<float> temperature, share;
  std::optional<uint64_t> seed;
  std::optional<bool> dark, wide;
  std::optional<std::string> name;
  Options options("hearth try");
  options.add("--temp T", &temperature, "Temperature").range(0, 2).default_text("the model's");
  options.add("--share P", &share, "Share");
  options.add("--seed N", &seed, "Seed");
  options.add("--dark,!--light", &dark, "Colours");
  options.add("--wide", &wide, "Wide");
  options.add("--name NAME", &name, "Name");
  const std::vector<std::string> arguments = {"--temp", "0", "--light", "--name", ""};
  ASSERT_TRUE(options.parse(arguments).ok());
  EXPECT_EQ(temperature, 0.0f);
  EXPECT_EQ(share, std::nullopt);
  EXPECT_EQ(seed, std::nullopt);
  EXPECT_EQ(dark, false);
  EXPECT_EQ(wide, std::nullopt);
  EXPECT_EQ(name, "");
  EXPECT_THAT(HelpPage::text(options, "Try", false), HasSubstr("(default: the model's)"));
}

TEST_F(OptionsTest, KnowsWhatWasGiven) {
  EXPECT_EQ(error_of({"--light"}), "");
  EXPECT_TRUE(dark->given());
  EXPECT_FALSE(json->given());
}

TEST_F(OptionsTest, ANumberMayFollowALetterAtOnce) {
  EXPECT_EQ(error_of({"-n64"}), "");
  EXPECT_EQ(values.tokens, 64u);
  EXPECT_THAT(error_of({"-ngl", "99"}), HasSubstr("-ngl"));
  EXPECT_THAT(error_of({"-px"}), HasSubstr("-px"));
}

TEST_F(OptionsTest, HexadecimalAndSignedNumbers) {
  EXPECT_EQ(error_of({"-n", "0x10", "--seed", "+5"}), "");
  EXPECT_EQ(values.tokens, 16u);
  EXPECT_EQ(values.seed, 5u);
}

struct Wrong {
  std::vector<std::string> arguments;
  const char* reason;
};

// Each of these once got through as another number or as none.
TEST(Numbers, AnErrorSaysWhatIsWrong) {
  for (const Wrong& item : {Wrong{{"-n", ""}, "not a whole number"},
                            {{"-n", "010"}, "without the leading zero"},
                            {{"-n", "gl"}, "'gl' is not a whole number"},
                            {{"-n", "1.5"}, "not a whole number"},
                            {{"-n", "-1"}, "must not be negative"},
                            {{"-n", "4001"}, "between 0 and 4000"},
                            {{"-n", "99999999999"}, "too large"},
                            {{"--seed", "99999999999999999999"}, "too large"},
                            {{"--seed", "-1"}, "must not be negative"},
                            {{"--port", "70000"}, "between 0 and 65535"},
                            {{"--share", "nan"}, "not a number"},
                            {{"--share", "2"}, "between 0 and 1"},
                            {{"--limit", "inf"}, "not a number"},
                            {{"--limit", "0"}, "more than 0"},
                            {{"--batch", "1,007"}, "leading zero"},
                            {{"--batch", ""}, "not a whole number"},
                            {{"--batch", "1,"}, "not a whole number"},
                            {{"--swap", "-1"}, "not a size"},
                            {{"--swap", "12 parsecs"}, "not a size"},
                            {{"--swap", "99999TB"}, "too large"}}) {
    Example example;
    const std::string error = example.error_of(item.arguments);
    EXPECT_THAT(error, HasSubstr(item.reason)) << item.arguments[1];
    EXPECT_THAT(error, HasSubstr("hearth try --help"));
    EXPECT_EQ(example.values.tokens, 7u);
  }
}

TEST(Sizes, AreBytesWithOrWithoutAUnit) {
  for (const auto& [text, bytes] : {std::pair<const char*, uint64_t>{"4096", 4096},
                                    {"1k", 1024},
                                    {"2KB", 2048},
                                    {"1.5 GiB", 3ull << 29},
                                    {"3mb", 3u << 20},
                                    {"10B", 10},
                                    {"0", 0},
                                    {"2T", 2ull << 40}}) {
    uint64_t value = 1;
    EXPECT_EQ(store_size(&value, text, std::nullopt), std::nullopt) << text;
    EXPECT_EQ(value, bytes) << text;
  }
}

TEST_F(OptionsTest, AMissingValueIsNoticed) {
  EXPECT_THAT(error_of({"-p"}), HasSubstr("needs a value: -p TEXT"));
  EXPECT_THAT(error_of({"-p", "--json"}), HasSubstr("needs a value"));
  // What is no option of ours is a value.
  EXPECT_EQ(error_of({"-p", "-"}), "");
  EXPECT_EQ(values.text, "-");
}

TEST_F(OptionsTest, TheSameOptionTwice) {
  EXPECT_THAT(error_of({"-n", "1", "--tokens", "2"}), HasSubstr("--tokens: given twice"));
}

TEST_F(OptionsTest, AFlagTakesNoValue) {
  EXPECT_THAT(error_of({"--json=yes"}), HasSubstr("--json: takes no value"));
}

TEST_F(OptionsTest, AWordTooMany) { EXPECT_THAT(error_of({"hello"}), HasSubstr("'hello'")); }

TEST_F(OptionsTest, AWrongOptionSuggestsTheNearest) {
  EXPECT_EQ(error_of({"--promt", "x"}),
            "unknown option --promt; did you mean --prompt? (see hearth try --help)");
  EXPECT_THAT(error_of({"--token=5"}), HasSubstr("did you mean --tokens?"));
  EXPECT_THAT(error_of({"-port", "1"}), HasSubstr("did you mean --port?"));
  EXPECT_THAT(error_of({"--lihgt"}), HasSubstr("did you mean --light?"));
  EXPECT_EQ(error_of({"--frobnicate"}), "unknown option --frobnicate (see hearth try --help)");
}

TEST_F(OptionsTest, OptionsOfOtherProgramsGetAnAnswer) {
  for (const auto& [option, answer] :
       {std::pair<const char*, const char*>{"-ngl", "choose it with -d"},
        {"--n-gpu-layers=99", "choose it with -d"},
        {"-t", "no threads"},
        {"-np", "--max-seqs"},
        {"-fa", "attention is always fused"},
        {"-b", "tokens per step"},
        {"-ub", "tokens per step"},
        {"--mlock", "copied to the device"},
        {"--no-mmap", "copied to the device"},
        {"--n-predict", "-n N"},
        {"--ctx-size", "-c N"}}) {
    const std::string error = error_of({option, "99"});
    EXPECT_THAT(error, HasSubstr(answer)) << option;
    EXPECT_THAT(error, ::testing::StartsWith(std::string(option).substr(0, 3))) << option;
  }
}

// An option of ours wins over another program's of the same name.
TEST(Options, OurOwnThreads) {
  uint32_t threads = 1;
  Options options("hearth quantize");
  options.add("--threads N", &threads, "Threads");
  const std::vector<std::string> arguments = {"--threads", "8"};
  EXPECT_TRUE(options.parse(arguments).ok());
  EXPECT_EQ(threads, 8u);
}

TEST(Options, TheLastCheckSeesAllVariables) {
  uint32_t lowest = 0, highest = 0;
  Options options("hearth try");
  options.add("--lowest N", &lowest, "Lowest");
  options.add("--highest N", &highest, "Highest");
  options.check([&] { return lowest > highest ? "the lowest is above the highest" : ""; });
  const std::vector<std::string> arguments = {"--lowest", "8", "--highest", "7"};
  EXPECT_THAT(options.parse(arguments).error().message,
              ::testing::StartsWith("the lowest is above the highest (see"));
}

TEST(Positionals, TextWithoutQuotesGetsAHint) {
  std::string text;
  Options options("hearth say");
  options.add("TEXT", &text, "What to say");
  const std::vector<std::string> arguments = {"Once", "upon"};
  EXPECT_THAT(options.parse(arguments).error().message, HasSubstr("in quotes"));
}

TEST_F(OptionsTest, HelpComesBeforeErrors) {
  const std::vector<std::string> arguments = {"-n", "many", "--help"};
  const auto wish = options.parse(arguments);
  ASSERT_TRUE(wish.ok());
  EXPECT_EQ(*wish, Options::Wish::kHelp);
}

TEST(Positionals, AreFilledInOrder) {
  std::string in, out;
  std::vector<std::string> rest;
  Options options("hearth move");
  options.add("IN", &in, "From").required();
  options.add("OUT", &out, "To").required();
  options.add("MORE...", &rest, "More");
  const std::vector<std::string> all = {"a", "--", "-b", "c", "--help"};
  EXPECT_TRUE(options.parse(all).ok());
  EXPECT_EQ(in, "a");
  EXPECT_EQ(out, "-b");
  EXPECT_THAT(rest, ElementsAre("c", "--help"));
}

TEST(Positionals, AMissingOneIsNamed) {
  std::string in, out;
  Options options("hearth move");
  options.add("IN", &in, "From").required();
  options.add("OUT", &out, "To").required();
  const std::vector<std::string> one = {"a"};
  EXPECT_THAT(options.parse(one).error().message, HasSubstr("missing argument OUT"));
}

TEST(Options, AMissingOneIsNamed) {
  std::string file;
  Options options("hearth read");
  options.add("-f,--file FILE", &file, "File").required();
  EXPECT_THAT(options.parse({}).error().message, HasSubstr("missing option --file FILE (see"));
}

TEST(Options, AnAliasIsAcceptedButNotShown) {
  uint32_t tokens = 1;
  Options options("hearth try");
  options.add("-n,--tokens N", &tokens, "How many").alias("--n-predict");
  EXPECT_THAT(HelpPage::text(options, "Try", true), Not(HasSubstr("--n-predict")));
  const std::vector<std::string> arguments = {"--n-predict=8"};
  EXPECT_TRUE(options.parse(arguments).ok());
  EXPECT_EQ(tokens, 8u);
}

struct Combination {
  std::vector<std::string> arguments;
  std::string error;
};

TEST(Combinations, AreChecked) {
  for (const Combination& item :
       {Combination{{"--a"}, ""},
        {{"--a", "--needs-a"}, ""},
        {{"--needs-a", "--b"}, "--needs-a: only works with --a"},
        {{"--b", "--shape", "oval", "--round"}, ""},
        {{"--b", "--round", "--shape", "circle:7"}, ""},
        {{"--b", "--shape", "square", "--round"},
         "--round: only works with --shape circle or oval"},
        {{"--b", "--round"}, "--round: only works with --shape circle or oval"},
        {{"--a", "--not-a"}, "--not-a: cannot be combined with --a"},
        {{"--a", "--scale", "2"}, "--scale: cannot be combined with --a"},
        {{"--a", "--scale", "1.0"}, ""},
        {{"--b", "--scale", "1", "--not-scale"}, ""},
        {{"--b", "--scale", "0", "--not-scale"}, "--not-scale: cannot be combined with --scale"},
        {{}, "give one of --a, --b"},
        {{"--a", "--b"}, "give only one of --a, --b"},
        {{"--b", "--word", "blue"}, "--word: unknown value 'blue'; use red or green"},
        {{"--b", "--word", "gren"}, "--word: unknown value 'gren'; did you mean green?"},
        {{"--b", "--checked", "x"}, "--checked: x is bad"}}) {
    bool a = false, b = false, needs = false, excludes = false, not_scale = false, round = false;
    double scale = 1;
    std::string word, checked, shape;
    Options options("hearth mix");
    const Option& first = options.add("--a", &a, "A");
    const Option& second = options.add("--b", &b, "B");
    options.add("--needs-a", &needs, "Needs").needs(first);
    options.add("--not-a", &excludes, "Excludes").excludes(first);
    const Option& scaling =
        options.add("--scale X", &scale, "1 does nothing").excludes(first).idle_at(1);
    options.add("--not-scale", &not_scale, "Excludes").excludes(scaling);
    const Option& shapes = options.add("--shape SHAPE", &shape, "Shape");
    options.add("--round", &round, "Needs").needs(shapes, {"circle", "oval"});
    options.add("--word WORD", &word, "Word").one_of({"red", "green"});
    options.add("--checked X", &checked, "Checked").check([](const std::string& text) {
      return text + " is bad";
    });
    options.exactly_one({&first, &second});
    const auto wish = options.parse(item.arguments);
    EXPECT_EQ(wish.ok(), item.error.empty());
    const std::string message = wish.ok() ? "" : wish.error().message;
    EXPECT_THAT(message, HasSubstr(item.error));
  }
}

TEST_F(OptionsTest, HelpShowsNamesDefaultsAndGroups) {
  bool rare = false;
  options.group("Rare");
  options.add("--rare", &rare, "Seldom wanted").advanced();
  const std::string page = HelpPage::text(options, "Try things", false);
  EXPECT_THAT(page, HasSubstr("Usage: hearth try [OPTIONS]"));
  EXPECT_THAT(page, HasSubstr("-n, --tokens N"));
  EXPECT_THAT(page, HasSubstr("How many (default: 7)"));
  EXPECT_THAT(page, HasSubstr("--swap SIZE"));
  EXPECT_THAT(page, Not(HasSubstr("--rare")));
  EXPECT_THAT(page, HasSubstr("--help-all"));
  const std::string all = HelpPage::text(options, "Try things", true);
  EXPECT_THAT(all, HasSubstr("Rare:\n"));
  EXPECT_THAT(all, HasSubstr("--rare"));
}

}  // namespace
}  // namespace hearth
