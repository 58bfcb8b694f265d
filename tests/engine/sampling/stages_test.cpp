// The parts of the less common samplers that need no device: orders, options, DRY.
#include "engine/sampling/stages.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/sampling/request_samplers.h"
#include "engine/sampling/sampler.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<SamplerOrder> order_of(std::vector<std::string> names) { return parse_sampler_order(names); }

TEST(SamplerOrder, DefaultIsLlamaCppsWithTheOthersAfterIt) {
  EXPECT_EQ(sampler_order_text({}),
            "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;top_a;epsilon_cutoff;eta_cutoff;xtc;"
            "temperature;smoothing");
}

TEST(SamplerOrder, TakesTheNamesOfOtherPrograms) {
  const auto order =
      order_of({"repetition_penalty", "presence_penalty", "dry", "temp", "dynamic_temperature",
                "quadratic_sampling", "typical-p", "mirostat", "tfs", "top-k"});
  ASSERT_TRUE(order.ok()) << order.error().message;
  EXPECT_EQ(sampler_order_text(*order), "penalties;dry;temperature;smoothing;typ_p;top_k");
  EXPECT_EQ(sampler_order_text(*order_of({})), "");
}

TEST(SamplerOrder, RefusesWhatItCannotDo) {
  EXPECT_THAT(order_of({"top_k", "topp"}).error().message, HasSubstr("no sampler 'topp'"));
  EXPECT_THAT(order_of({"top_k", "penalties"}).error().message, HasSubstr("out of place"));
  EXPECT_THAT(order_of({"dry", "penalties"}).error().message, HasSubstr("out of place"));
  EXPECT_THAT(order_of({"top_k", "min_p", "top_k"}).error().message, HasSubstr("twice"));
}

TEST(Stages, PlainRowsDoNotNeedThem) {
  for (const SamplingOptions& plain : std::initializer_list<SamplingOptions>{
           {},
           {.temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .min_p = 0.1f},
           {.temperature = 0, .typical_p = 0.5f, .xtc_probability = 1, .mirostat = 2},
           {.xtc_probability = 0.5f, .xtc_threshold = 0.6f},
           {.dry_multiplier = 0.8f},
           {.top_k = 40, .min_p = 0.1f, .order = *order_of({"top_k", "min_p", "xtc"})}}) {
    EXPECT_FALSE(uses_stages(plain));
    const auto row = make_sampling_row(plain, {});
    ASSERT_TRUE(row.ok());
    EXPECT_FALSE(has_stages(*row));
  }
}

TEST(Stages, OtherSamplersAndOrdersDo) {
  for (const SamplingOptions& other : std::initializer_list<SamplingOptions>{
           {.typical_p = 0.9f},
           {.top_n_sigma = 1},
           {.top_a = 0.1f},
           {.epsilon_cutoff = 1e-4f},
           {.eta_cutoff = 1e-4f},
           {.xtc_probability = 0.5f},
           {.dynatemp_range = 0.5f},
           {.smoothing_factor = 0.2f},
           {.mirostat = 2},
           {.temperature = 0.5f, .min_p = 0.1f, .order = *order_of({"temperature", "min_p"})}}) {
    EXPECT_TRUE(uses_stages(other));
    const auto row = make_sampling_row(other, {.history_slot = 1});
    ASSERT_TRUE(row.ok());
    EXPECT_TRUE(has_stages(*row));
    EXPECT_FALSE(is_plainly_greedy(*row));
  }
}

TEST(Stages, AreInTheOrderOfTheList) {
  const auto stages =
      make_stages({.temperature = 0.5f,
                   .top_k = 10,
                   .typical_p = 0.5f,
                   .top_a = 0.1f,
                   .order = *order_of({"top_a", "temp", "top_p", "typ_p", "top_k"})});
  EXPECT_EQ(stages.order_low, params::kStageTopA | params::kStageTemperature << 4 |
                                  params::kStageTypical << 8 | params::kStageTopK << 12);
  // Mirostat replaces what drops tokens.
  const auto mirostat =
      make_stages({.temperature = 0.5f, .top_k = 10, .top_a = 0.1f, .mirostat = 2});
  EXPECT_EQ(mirostat.order_low, params::kStageTemperature | params::kStageMirostat << 4);
  EXPECT_EQ(mirostat.mirostat_mu, 10.0f);
}

TEST(Stages, ASamplerThatIsNotListedIsOff) {
  const SamplingOptions options = only_listed({.temperature = 0.2f,
                                               .top_k = 5,
                                               .repetition_penalty = 1.5f,
                                               .dry_multiplier = 1,
                                               .order = *order_of({"top_k"})});
  EXPECT_EQ(options.temperature, 1.0f);
  EXPECT_EQ(options.top_k, 5u);
  EXPECT_EQ(options.repetition_penalty, 1.0f);
  EXPECT_FALSE(uses_dry(options));
}

TEST(Stages, RefuseSettingsOutOfRangeByName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<SamplingOptions, const char*> cases[] = {
      {{.typical_p = 1.5f}, "typical_p"},
      {{.top_n_sigma = nan}, "top_n_sigma"},
      {{.top_a = -1}, "top_a"},
      {{.epsilon_cutoff = 2}, "epsilon_cutoff"},
      {{.xtc_probability = 1.1f}, "xtc_probability"},
      {{.dynatemp_exponent = 0}, "dynatemp_exponent"},
      {{.smoothing_curve = 4}, "smoothing_curve"},
      {{.mirostat = 1}, "mirostat"},
      {{.dry_base = 0.5f}, "dry_base"},
      {{.dry_allowed_length = 0}, "dry_allowed_length"},
      {{.dry_penalty_last_n = -2}, "dry_penalty_last_n"},
  };
  for (const auto& [options, word] : cases) {
    const auto row = make_sampling_row(options, {});
    ASSERT_FALSE(row.ok()) << word;
    EXPECT_THAT(row.error().message, HasSubstr(word));
  }
}

// Token t is the letter 'a' + t, except that 20 is not text.
std::optional<std::string> letter(uint32_t token) {
  if (token == 20) return std::nullopt;
  return std::string(1, static_cast<char>('a' + token));
}

std::map<uint32_t, float> by_token(const std::vector<params::TokenBias>& penalties) {
  std::map<uint32_t, float> map;
  for (const auto& [token, penalty] : penalties) map[token] = penalty;
  return map;
}

// The definition: every earlier place at which the last tokens have occurred.
std::map<uint32_t, float> reference_dry(const DryOptions& options, std::vector<uint32_t> tokens) {
  if (options.last_tokens > 0 && tokens.size() > options.last_tokens)
    tokens.erase(tokens.begin(), tokens.end() - options.last_tokens);
  std::map<uint32_t, float> penalties;
  const auto breaks = [&](uint32_t token) {
    const auto text = letter(token);
    return !text || std::ranges::find(options.breakers, *text) != options.breakers.end();
  };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    size_t length = 0;
    while (length <= i && tokens[i - length] == tokens[tokens.size() - 1 - length] &&
           !breaks(tokens[i - length]))
      ++length;
    if (length < options.allowed_length || breaks(tokens[i + 1])) continue;
    const float penalty =
        options.multiplier *
        std::pow(options.base, static_cast<float>(length - options.allowed_length));
    penalties[tokens[i + 1]] = std::max(penalties[tokens[i + 1]], penalty);
  }
  return penalties;
}

TEST(Dry, EqualsTheDefinitionOnRandomTokens) {
  std::mt19937 random(5);
  size_t found = 0;
  for (uint32_t round = 0; round < 200; ++round) {
    const DryOptions options{
        .multiplier = 0.8f,
        .base = 1.5f,
        .allowed_length = 1 + round % 3,
        .last_tokens = round % 4 == 0 ? 12u : 0u,
        .breakers = round % 2 == 0 ? std::vector<std::string>{"c"} : std::vector<std::string>{}};
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i < 40; ++i) tokens.push_back(random() % 19 == 0 ? 20 : random() % 4);
    const size_t known = random() % 30, path = random() % 8;
    DryPenalties dry(options, letter, std::span(tokens).first(known / 2));
    for (size_t i = known / 2; i < known; ++i) dry.append(tokens[i]);
    const auto expected = reference_dry(
        options, {tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(known + path)});
    const auto penalties = dry.penalties(std::span(tokens).subspan(known, path));
    EXPECT_EQ(penalties.size(), expected.size());
    EXPECT_EQ(by_token(penalties), expected);
    found += expected.size();
  }
  EXPECT_GT(found, 100u);
}

// A breaker in the middle of a token, or spread over two, breaks as well. Matched by last tokens,
// ": " would not be found in "x:" and " y".
TEST(Dry, BreakersAreMatchedByText) {
  const char* const kTexts[] = {"Anna", " said", "x:", " y", "well", " then"};
  const TokenText text = [&](uint32_t token) { return std::optional<std::string>(kTexts[token]); };
  const DryOptions options{.multiplier = 1, .base = 2, .allowed_length = 1, .breakers = {": "}};
  // Without the breaker the last four tokens have occurred before, and "well" followed them.
  const std::vector<uint32_t> tokens = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3};
  EXPECT_THAT(DryPenalties(options, text, tokens).penalties(), IsEmpty());
  DryOptions none = options;
  none.breakers.clear();
  EXPECT_EQ(by_token(DryPenalties(none, text, tokens).penalties()),
            (std::map<uint32_t, float>{{4, 8.0f}}));
  // After the breaker, a repetition counts from there.
  std::vector<uint32_t> longer = tokens;
  longer.push_back(4);
  EXPECT_EQ(by_token(DryPenalties(options, text, longer).penalties()),
            (std::map<uint32_t, float>{{5, 1.0f}}));
}

TEST(Dry, KeepsTheLongestRepetitionsAndStaysFinite) {
  DryOptions options{.multiplier = 100, .base = 100, .allowed_length = 1, .most = 1};
  const std::vector<uint32_t> tokens = {1, 2, 3, 9, 2, 4, 1, 2};
  const auto penalties = DryPenalties(options, letter, tokens).penalties();
  ASSERT_EQ(penalties.size(), 1u);
  EXPECT_EQ(penalties[0].token, 3u);
  const std::vector<uint32_t> same(100, 1);
  const auto large = DryPenalties(options, letter, same).penalties();
  ASSERT_EQ(large.size(), 1u);
  EXPECT_TRUE(std::isfinite(large[0].bias));
}

TEST(RequestSamplers, AddTheirWordsToARow) {
  RequestSamplers samplers({.dry_multiplier = 1, .dry_allowed_length = 1}, {}, letter,
                           std::vector<uint32_t>{1, 2, 3}, 8);
  EXPECT_TRUE(samplers.need_host());
  EXPECT_TRUE(samplers.allow_proposals());
  std::vector<uint32_t> words = {7};
  params::SamplingRow row{};
  samplers.add_to(row, {}, words);
  EXPECT_EQ(words.size(), 1u) << "nothing repeats";
  EXPECT_EQ(row.flags, 0u);
  samplers.append(1);
  samplers.add_to(row, {}, words);
  EXPECT_EQ(row.flags, params::kSamplingDry);
  EXPECT_EQ(row.dry, 1u);
  EXPECT_EQ(words, (std::vector<uint32_t>{7, 1, 2, 0x3f800000}));

  RequestSamplers mirostat({.mirostat = 2, .mirostat_tau = 3}, {}, letter, {}, 8);
  EXPECT_FALSE(mirostat.need_host());
  EXPECT_FALSE(mirostat.allow_proposals());
  words.clear();
  mirostat.add_to(row, {.read_slot = 4, .write_slot = 5}, words);
  EXPECT_EQ(row.stages, 0u);
  EXPECT_EQ(words.size(), sizeof(params::SamplingStages) / sizeof(uint32_t));
  EXPECT_EQ(words.back(), 5u);
}

}  // namespace
}  // namespace hearth
