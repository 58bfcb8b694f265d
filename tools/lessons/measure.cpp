#include "tools/lessons/measure.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {

// Recursive descent; the depth is limited, so that no text can exhaust the stack.
class MeasureReader {
 public:
  explicit MeasureReader(std::string_view text) : text_(text) {}

  Result<Measure> read() {
    measure_.text_ = std::string(text_);
    HEARTH_TRY(sum(0));
    if (place_ < text_.size()) return unexpected();
    return std::move(measure_);
  }

 private:
  static constexpr int kMostDepth = 32;
  using Step = Measure::Step;

  char peek() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
    return place_ < text_.size() ? text_[place_] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++place_;
    return true;
  }
  Error unexpected() {
    return peek() == '\0'
               ? invalid("the expression ends too early")
               : invalid(fmt::format("{} is not expected here", in_quotes(text_.substr(place_))));
  }
  void add(Step step) { measure_.operations_.push_back({.step = step}); }

  Status sum(int depth) {
    if (depth > kMostDepth) return invalid("the parentheses are nested too deeply");
    HEARTH_TRY(product(depth));
    while (true) {
      if (take('+')) {
        HEARTH_TRY(product(depth));
        add(Step::kAdd);
      } else if (take('-')) {
        HEARTH_TRY(product(depth));
        add(Step::kSubtract);
      } else {
        return {};
      }
    }
  }
  Status product(int depth) {
    HEARTH_TRY(factor(depth));
    while (true) {
      if (take('*')) {
        HEARTH_TRY(factor(depth));
        add(Step::kMultiply);
      } else if (take('/')) {
        HEARTH_TRY(factor(depth));
        add(Step::kDivide);
      } else {
        return {};
      }
    }
  }
  Status factor(int depth) {
    const bool negative = take('-');
    HEARTH_TRY(operand(depth));
    if (negative) add(Step::kNegate);
    return {};
  }
  Status operand(int depth) {
    if (take('(')) {
      HEARTH_TRY(sum(depth + 1));
      return take(')') ? Status{} : Status(unexpected());
    }
    const auto first = static_cast<unsigned char>(peek());
    if (std::isdigit(first) != 0) return constant();
    if (std::isalpha(first) != 0) return number();
    return unexpected();
  }
  Status constant() {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + place_, text_.data() + text_.size(), value);
    if (error != std::errc{}) return unexpected();
    place_ = static_cast<size_t>(end - text_.data());
    measure_.operations_.push_back({.step = Step::kConstant, .constant = value});
    return {};
  }
  std::string word() {
    peek();
    const size_t begin = place_;
    while (place_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[place_])) != 0 || text_[place_] == '_' ||
            (text_[place_] == '-' && in_parentheses_)))
      ++place_;
    return std::string(text_.substr(begin, place_ - begin));
  }
  Status number() {
    Measure::Number wanted;
    wanted.metric = word();
    if (!take('('))
      return invalid(fmt::format("{} needs the name of a run after it, as in {}(NAME)",
                                 in_quotes(wanted.metric), wanted.metric));
    in_parentheses_ = true;  // names of runs may have a '-'
    wanted.run = word();
    in_parentheses_ = false;
    if (wanted.run.empty() || !take(')')) return unexpected();
    measure_.operations_.push_back({.step = Step::kNumber, .number = measure_.numbers_.size()});
    measure_.numbers_.push_back(std::move(wanted));
    return {};
  }

  const std::string_view text_;
  size_t place_ = 0;
  bool in_parentheses_ = false;
  Measure measure_;
};

Result<Measure> Measure::parse(std::string_view text) { return MeasureReader(text).read(); }

std::optional<double> Measure::value(const LookUp& look_up) const {
  std::vector<double> stack;
  const auto pop = [&] {
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Operation& operation : operations_) {
    if (operation.step == Step::kConstant) {
      stack.push_back(operation.constant);
      continue;
    }
    if (operation.step == Step::kNumber) {
      const std::optional<double> number = look_up(numbers_[operation.number]);
      if (!number) return std::nullopt;
      stack.push_back(*number);
      continue;
    }
    if (operation.step == Step::kNegate) {
      stack.back() = -stack.back();
      continue;
    }
    const double right = pop();
    double& left = stack.back();
    if (operation.step == Step::kAdd) left += right;
    if (operation.step == Step::kSubtract) left -= right;
    if (operation.step == Step::kMultiply) left *= right;
    if (operation.step == Step::kDivide) left /= right;
  }
  if (stack.size() != 1 || !std::isfinite(stack.back())) return std::nullopt;
  return stack.back();
}

Result<MeasuredText> MeasuredText::parse(std::string_view text) {
  MeasuredText result;
  while (true) {
    const size_t open = text.find('{');
    const size_t stray = text.substr(0, open).find('}');
    if (stray != std::string_view::npos) return invalid("a '}' without a '{' before it");
    if (open == std::string_view::npos) {
      result.pieces_.push_back({.text = std::string(text), .measure = std::nullopt});
      return result;
    }
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) return invalid("a '{' without a '}' after it");
    HEARTH_ASSIGN(Measure measure, Measure::parse(text.substr(open + 1, close - open - 1)));
    result.pieces_.push_back(
        {.text = std::string(text.substr(0, open)), .measure = std::move(measure)});
    text.remove_prefix(close + 1);
  }
}

std::vector<Measure::Number> MeasuredText::numbers() const {
  std::vector<Measure::Number> all;
  for (const Piece& piece : pieces_)
    if (piece.measure)
      all.insert(all.end(), piece.measure->numbers().begin(), piece.measure->numbers().end());
  return all;
}

std::optional<std::string> MeasuredText::fill(const Measure::LookUp& look_up) const {
  std::string filled;
  for (const Piece& piece : pieces_) {
    filled += piece.text;
    if (!piece.measure) continue;
    const std::optional<double> value = piece.measure->value(look_up);
    if (!value) return std::nullopt;
    filled += format_measured(*value);
  }
  return filled;
}

std::string format_measured(double value) {
  const double size = std::abs(value);
  if (std::abs(value - std::round(value)) < 1e-9 || size >= 99.95)
    return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace hearth
