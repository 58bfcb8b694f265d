// Arithmetic over measured numbers, "throughput(continuous) / throughput(static)", and texts with
// such numbers in braces. Knows nothing about what is measured: a function looks numbers up.
//
// An expression has numbers, + - * /, parentheses and NAME(WORD): the number NAME of the run WORD.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class Measure {
 public:
  struct Number {
    std::string metric, run;
    bool operator==(const Number&) const = default;
  };
  // Nothing: it was not measured.
  using LookUp = std::function<std::optional<double>(const Number& number)>;

  Measure() = default;  // REQUIRES: assigned from parse() before use
  static Result<Measure> parse(std::string_view text);

  // The numbers that it needs.
  std::span<const Number> numbers() const { return numbers_; }
  // Nothing if a number was not measured or the result is not finite, as after a division by 0.
  std::optional<double> value(const LookUp& look_up) const;
  const std::string& text() const { return text_; }

 private:
  friend class MeasureReader;
  enum class Step : uint8_t { kConstant, kNumber, kAdd, kSubtract, kMultiply, kDivide, kNegate };
  struct Operation {
    Step step = Step::kConstant;
    double constant = 0;
    size_t number = 0;  // index in numbers_
  };

  std::string text_;
  std::vector<Number> numbers_;
  std::vector<Operation> operations_;  // operands before their operator
};

// A text with numbers to be filled in: "{throughput(one)} tokens/s".
class MeasuredText {
 public:
  // Braces cannot be nested, and there is no way to write one.
  static Result<MeasuredText> parse(std::string_view text);

  std::vector<Measure::Number> numbers() const;
  // Nothing if a number in it was not measured.
  std::optional<std::string> fill(const Measure::LookUp& look_up) const;

 private:
  struct Piece {
    std::string text;                // before the number
    std::optional<Measure> measure;  // none: the text ends
  };
  std::vector<Piece> pieces_;
};

// Three digits, or more before the point: "1236", "41.5", "0.55". Whole numbers have no point.
std::string format_measured(double value);

}  // namespace hearth
