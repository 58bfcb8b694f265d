#include "engine/compress/compress.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// The units, with those that must stay between [ and ].
std::string divided(std::string_view text, CompressUnit unit, std::vector<size_t> tokens = {}) {
  std::string shown;
  size_t end = 0;
  for (const TextUnit& one : divide_text(text, unit, tokens)) {
    EXPECT_EQ(one.begin, end) << text;
    EXPECT_GT(one.end, one.begin) << text;
    end = one.end;
    const std::string words(text.substr(one.begin, one.end - one.begin));
    if (!shown.empty()) shown += '|';
    shown += one.must_stay ? '[' + words + ']' : words;
  }
  EXPECT_EQ(end, text.size());
  return shown;
}

TEST(TextUnits, Sentences) {
  const struct {
    std::string_view text, units;
  } kRows[] = {
      {"", ""},
      {"One. Two! Three", "One. |Two! |Three"},
      {"See example.org now. Yes.", "See example.org now. |Yes."},
      {"Dr. Who met J. Smith, e.g. here. He left.", "Dr. Who met J. Smith, e.g. here. |He left."},
      {"He said \"no.\" Then he left.", "He said \"no.\" |Then he left."},
      {"A line\nAnother\n\nMore", "A line\n|Another\n\n|More"},
      {"Fine. Is it? Good.", "Fine. |[Is it? ]|Good."},
      {"Good. Answer in one word. Fine.", "Good. |[Answer in one word. ]|Fine."},
      {"Used cars. Listless cats.", "Used cars. |Listless cats."},
      {"- Use a pen.\n- Cats sleep.", "[- Use a pen.\n]|- Cats sleep."},
      {"It costs 3.50 here. It is cheap.", "[It costs 3.50 here. ]|It is cheap."},
      {"Text.\n```\nint a;\n\nb\n```\nMore.", "Text.\n|[```\nint a;\n\nb\n```\n]|More."},
      {"Text.\n    indented\n    code\nMore.", "Text.\n|[    indented\n    code\n]|More."},
      {"int main() {\n}\nText.", "[int main() {\n}\n]|Text."},
      {"Call `f` here. Now.", "[Call `f` here. ]|Now."},
      {"\u597d\u3002\u597d\u3002", "\u597d\u3002|\u597d\u3002"},
  };
  for (const auto& row : kRows) EXPECT_EQ(divided(row.text, CompressUnit::kSentence), row.units);
}

TEST(TextUnits, Phrases) {
  EXPECT_EQ(divided("The old cat, which slept, ran to the house.", CompressUnit::kPhrase),
            "The old cat, |which slept, |ran |to the house.");
  EXPECT_EQ(divided("In May it rained on 12 days of the month.", CompressUnit::kPhrase),
            "In May it rained |[on 12 days ]|of the month.");
  EXPECT_EQ(divided("Why, of all things? Yes, and no.", CompressUnit::kPhrase),
            "[Why, of all things? ]|Yes, |and no.");
}

TEST(TextUnits, TokensOfOneNumberStayTogether) {
  //                 0123456789012345678
  EXPECT_EQ(divided("cats have 1234 legs", CompressUnit::kToken, {0, 5, 10, 12, 15, 17}),
            "cats |have |[12]|[34 ]|le|gs");
}

// A token stays if a word that it is a piece of has a digit.
TEST(TextUnits, TokensOfRandomTextsStayIfTheirWordsHaveDigits) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(1 + random() % 30, ' ');
    for (char& c : text) c = "ab1  \t"[random() % 6];
    text[0] = 'c';  // an indented line is code
    std::vector<size_t> tokens;
    for (size_t at = 0; at < text.size(); at += 1 + random() % 4) tokens.push_back(at);
    const auto space = [&](size_t at) { return text[at] == ' ' || text[at] == '\t'; };
    for (const TextUnit& unit : divide_text(text, CompressUnit::kToken, tokens)) {
      size_t begin = unit.begin, end = unit.end;
      while (begin < end && space(begin)) ++begin;
      bool digit = false;
      if (begin < end) {
        while (begin > 0 && !space(begin - 1)) --begin;
        while (end < text.size() && !space(end - 1) && !space(end)) ++end;
        digit = std::any_of(text.begin() + static_cast<std::ptrdiff_t>(begin),
                            text.begin() + static_cast<std::ptrdiff_t>(end),
                            [](char c) { return c == '1'; });
      }
      ASSERT_EQ(unit.must_stay, digit) << '"' << text << "\" from " << unit.begin;
    }
  }
}

// Each of these took time that grows with the square of the length: half an hour and more.
TEST(TextUnits, LongTextsWithoutSpacesOrLinesAreDividedInOneGo) {
  constexpr size_t kBytes = 1 << 20;
  std::string dots(kBytes, '.');
  dots += 'a';
  EXPECT_EQ(divide_text(dots, CompressUnit::kPhrase, {}).size(), 1u);
  EXPECT_EQ(find_question(dots), dots.size());
  std::string sentences;
  while (sentences.size() < kBytes) sentences += "So. ";
  EXPECT_EQ(divide_text(sentences, CompressUnit::kSentence, {}).size(), kBytes / 4);
  const std::string word(kBytes, 'a');
  std::vector<size_t> tokens;
  for (size_t at = 0; at < kBytes; at += 2) tokens.push_back(at);
  EXPECT_EQ(divide_text(word, CompressUnit::kToken, tokens).size(), kBytes / 2);
}

TEST(TextUnits, TheQuestionIsTheLastParagraphThatAsks) {
  const auto question = [](std::string_view text) {
    return std::string(text.substr(find_question(text)));
  };
  EXPECT_EQ(question("Cats sleep.\n\nDo cats sleep?\n"), "Do cats sleep?\n");
  EXPECT_EQ(question("Why?\n\nCats sleep."), "");
  EXPECT_EQ(question("Cats sleep. Dogs bark. Who barks?"), "Who barks?");
  EXPECT_EQ(question("Cats sleep.\nName them all."), "Name them all.");
  EXPECT_EQ(question(""), "");
}

// One token per word; `surprisal` per word.
CompressedPart compress(std::string_view text, const std::vector<double>& surprisal, double ratio,
                        CompressUnit unit) {
  std::vector<ScoredToken> tokens;
  for (size_t at = 0, i = 0; at < text.size(); ++i) {
    tokens.push_back({.begin = at, .surprisal = i < surprisal.size() ? surprisal[i] : 1});
    at = text.find_first_of(" \n", at);
    at = at == std::string_view::npos ? text.size() : text.find_first_not_of(" \n", at);
    if (at == std::string_view::npos) at = text.size();
  }
  const CompressPart part{.begin = 0, .end = text.size(), .ratio = ratio};
  return compress_parts(text, tokens, std::span(&part, 1), unit)[0];
}

TEST(Compress, KeepsTheMostSurprisingSentences) {
  const CompressedPart part = compress("Aa bb. Cc dd. Ee ff. Gg hh.", {1, 1, 5, 5, 2, 2, 4, 4}, 0.5,
                                       CompressUnit::kSentence);
  EXPECT_EQ(part.text, "Cc dd. Gg hh.");
  EXPECT_EQ(part.tokens, 8u);
  EXPECT_EQ(part.kept_tokens, 4u);
}

TEST(Compress, QuestionsStayEvenIfTheyExceedTheBudget) {
  EXPECT_EQ(compress("Aa bb cc. Who dd ee?", {9, 9, 9, 0, 0, 0}, 0.2, CompressUnit::kSentence).text,
            "Who dd ee?");
}

TEST(Compress, SomethingIsLeftEvenIfNoUnitFits) {
  EXPECT_EQ(compress("Aa bb cc. Dd ee ff.", {1, 1, 1, 2, 2, 2}, 0.4, CompressUnit::kSentence).text,
            "Dd ee ff.");
  EXPECT_EQ(compress("aa bb", {1, 2}, 0.1, CompressUnit::kToken).text, "bb");
  EXPECT_EQ(compress("Aa bb?", {1, 2}, 0.1, CompressUnit::kSentence).text, "Aa bb?");
}

TEST(Compress, SentencesThatLoseTheirEndKeepTheirFullStop) {
  EXPECT_EQ(compress("The cat, which slept, ran to town.\nIt was fun.",
                     {9, 9, 1, 1, 0, 0, 0, 0, 0, 0}, 0.2, CompressUnit::kPhrase)
                .text,
            "The cat.\n");
}

TEST(Compress, ParagraphsStayApart) {
  EXPECT_EQ(compress("Aa bb. Cc dd.\n\nEe ff. Gg hh.", {9, 9, 1, 1, 1, 1, 9, 9}, 0.5,
                     CompressUnit::kSentence)
                .text,
            "Aa bb.\n\nGg hh.");
}

TEST(Compress, DropsTokens) {
  EXPECT_EQ(compress("aa bb cc dd ee 77", {5, 0, 4, 0, 3, 0}, 0.7, CompressUnit::kToken).text,
            "aa cc ee 77");
}

TEST(Compress, EveryPartHasItsOwnBudget) {
  const std::string_view text = "Aa bb. Cc dd. Ee ff. Gg hh.";
  std::vector<ScoredToken> tokens;
  const double surprisal[] = {1, 1, 2, 2, 9, 9, 8, 8};
  for (size_t i = 0; i < 8; ++i)
    tokens.push_back({.begin = i / 2 * 7 + i % 2 * 3, .surprisal = surprisal[i]});
  const CompressPart parts[] = {{0, 14, 0.5}, {14, 27, 1}};
  const auto compressed = compress_parts(text, tokens, parts, CompressUnit::kSentence);
  ASSERT_EQ(compressed.size(), 2u);
  EXPECT_EQ(compressed[0].text, "Cc dd. ");
  EXPECT_EQ(compressed[1].text, "Ee ff. Gg hh.");
  EXPECT_EQ(compressed[1].kept_tokens, 4u);
}

TEST(Compress, RatiosAreSharesOfWhatIsKept) {
  for (const double ratio : {0.01, 0.5, 1.0}) EXPECT_TRUE(is_compression_ratio(ratio));
  for (const double ratio : {0.0, 2.0, -1.0, 1.01, std::nan("")})
    EXPECT_FALSE(is_compression_ratio(ratio));
  EXPECT_EQ(wrong_ratio(2),
            "a compression ratio is the share of tokens to keep: above 0 and at most 1, not 2");
}

}  // namespace
}  // namespace hearth
