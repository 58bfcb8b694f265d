// The arithmetic of lessons: expressions over measured numbers, and texts with numbers in them.
#include "tools/lessons/measure.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

std::optional<double> measure_look_up(const Measure::Number& number) {
  static const std::map<std::string, double> kNumbers = {
      {"speed one", 100}, {"speed two-b", 250}, {"time one", 0}};
  const auto place = kNumbers.find(number.metric + " " + number.run);
  if (place == kNumbers.end()) return std::nullopt;
  return place->second;
}

std::optional<double> measured(const std::string& text) {
  const Result<Measure> measure = Measure::parse(text);
  EXPECT_TRUE(measure.ok()) << text << ": " << measure.error().message;
  return measure.ok() ? measure->value(measure_look_up) : std::nullopt;
}

TEST(Measure, FollowsTheRulesOfArithmetic) {
  EXPECT_EQ(measured("speed(two-b) / speed(one)"), 2.5);
  EXPECT_EQ(measured("1 + 2 * 3 - 4 / 2"), 5.0);
  EXPECT_EQ(measured("(1 + 2) * 3"), 9.0);
  EXPECT_EQ(measured("10 - 3 - 2"), 5.0);
  EXPECT_EQ(measured("100 / 5 / 2"), 10.0);
  EXPECT_EQ(measured("-speed(one) + 1.5"), -98.5);
  EXPECT_EQ(measured("2--1"), 3.0);
}

TEST(Measure, HasNoValueIfItWasNotMeasured) {
  EXPECT_EQ(measured("speed(three)"), std::nullopt);
  EXPECT_EQ(measured("1 + 0 * speed(three)"), std::nullopt);
  EXPECT_EQ(measured("speed(one) / time(one)"), std::nullopt);
  EXPECT_EQ(measured("time(one) / time(one)"), std::nullopt);
}

TEST(Measure, NamesWhatItNeeds) {
  const Result<Measure> measure = Measure::parse("speed(one)/(time(two-b)+1)");
  ASSERT_TRUE(measure.ok());
  ASSERT_EQ(measure->numbers().size(), 2u);
  EXPECT_EQ(measure->numbers()[0], (Measure::Number{"speed", "one"}));
  EXPECT_EQ(measure->numbers()[1], (Measure::Number{"time", "two-b"}));
}

TEST(Measure, RefusesWhatItDoesNotUnderstand) {
  const auto wrong = [](const std::string& text) {
    const Result<Measure> measure = Measure::parse(text);
    EXPECT_FALSE(measure.ok()) << text;
    return measure.ok() ? std::string() : measure.error().message;
  };
  EXPECT_THAT(wrong(""), HasSubstr("ends too early"));
  EXPECT_THAT(wrong("1 +"), HasSubstr("ends too early"));
  EXPECT_THAT(wrong("speed"), HasSubstr("needs the name of a run"));
  EXPECT_THAT(wrong("speed()"), HasSubstr("')'"));
  EXPECT_THAT(wrong("(1 + 2"), HasSubstr("ends too early"));
  EXPECT_THAT(wrong("1 2"), HasSubstr("'2' is not expected"));
  EXPECT_THAT(wrong("1 % 2"), HasSubstr("'% 2'"));
  EXPECT_THAT(wrong(std::string(100000, '(')), HasSubstr("too deeply"));
}

TEST(MeasuredText, FillsNumbersIn) {
  const Result<MeasuredText> text =
      MeasuredText::parse("From {speed(one)} to {speed(two-b)}: {speed(two-b)/speed(one)} times.");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->numbers().size(), 4u);
  EXPECT_EQ(text->fill(measure_look_up), "From 100 to 250: 2.50 times.");
}

TEST(MeasuredText, IsLeftOutIfANumberIsMissing) {
  EXPECT_EQ(MeasuredText::parse("{speed(three)} tokens/s")->fill(measure_look_up), std::nullopt);
  EXPECT_EQ(MeasuredText::parse("nothing to fill in")->fill(measure_look_up), "nothing to fill in");
}

TEST(MeasuredText, RefusesStrayBraces) {
  EXPECT_THAT(MeasuredText::parse("{speed(one)").error().message, HasSubstr("'{' without"));
  EXPECT_THAT(MeasuredText::parse("speed(one)}").error().message, HasSubstr("'}' without"));
  EXPECT_THAT(MeasuredText::parse("{}").error().message, HasSubstr("ends too early"));
}

TEST(FormatMeasured, ShowsThreeDigits) {
  EXPECT_EQ(format_measured(1235.68), "1236");
  EXPECT_EQ(format_measured(41.52), "41.5");
  EXPECT_EQ(format_measured(0.554), "0.55");
  EXPECT_EQ(format_measured(7.0), "7");
  EXPECT_EQ(format_measured(9.999), "10.0");
  EXPECT_EQ(format_measured(99.97), "100");
  EXPECT_EQ(format_measured(-1.25), "-1.25");
}

}  // namespace
}  // namespace hearth::testing
