#include "engine/program/row_division.h"

#include <array>

#include "engine/program/op_values.h"

namespace hearth {
namespace {

bool names_value(const Op& op, Value value) {
  bool found = false;
  const auto compare = [&](const Value& named) { found |= named == value; };
  std::visit([&](const auto& what) { visit_values(what, compare, compare); }, op.what);
  return found;
}

// Null if the op is no sum that includes what was there before.
const SumOp* adding_sum(const Op& op) {
  const SumOp* sum = op.as<SumOp>();
  return sum != nullptr && sum->adds ? sum : nullptr;
}

// Walks the ops of a step and notes which values a rank has only its own rows of.
class RowDivider {
 public:
  RowDivider(const TensorShard& shard, uint32_t rows)
      : rows_(rows), own_rows_(static_cast<uint32_t>(own_rows(shard, rows).size)) {}

  void add(const Op& op, const Op* next) {
    if (op.as<PickOp>() != nullptr) picked_ = true;
    // What is added to is cleared where it is not the first rank's; the addend is another value.
    if (const ClearOp* clear = op.as<ClearOp>(); clear != nullptr && is_own(clear->y)) return;
    const bool writes_addend = next != nullptr && adds_to_own(*next);
    if (adds_to_own(op))
      append_sum_and_add(op);
    else if (const SumOp* sum = op.as<SumOp>(); sum != nullptr && !sum->adds && divides(op))
      append_sum(op, sum->y);
    else if ((op.as<NormOp>() != nullptr || op.as<AddOp>() != nullptr) && reads_only_own(op))
      append_on_own(op);
    else if (writes_addend)
      append_addend(op, next->as<SumOp>()->y);
    else
      append_on_all(op);
  }
  std::vector<Op> take() { return std::move(ops_); }

 private:
  bool& is_own(Value value) { return own_[static_cast<size_t>(value)]; }
  bool divides(const Op& op) const { return !picked_ && op.rows == rows_; }

  // Whether the op is a sum that adds to rows which are divided.
  bool adds_to_own(const Op& op) {
    const SumOp* sum = adding_sum(op);
    return sum != nullptr && divides(op) && is_own(sum->y);
  }

  bool reads_only_own(const Op& op) {
    bool only_own = true;
    const auto check = [&](const Value& value) { only_own = only_own && is_own(value); };
    std::visit([&](const auto& what) { visit_values(what, check, [](const Value&) {}); }, op.what);
    return only_own;
  }

  void append_sum(Op op, Value y) {
    width_ = op.as<SumOp>()->width;
    op.what = SumOp{.y = y, .width = width_, .own_rows = own_rows_};
    ops_.push_back(op);
    is_own(y) = true;
  }

  // The product or the experts before left what is to be added in `projected`.
  void append_sum_and_add(const Op& op) {
    const SumOp sum = *op.as<SumOp>();
    append_sum(op, Value::kProjected);
    Op add = op;
    add.part = step_part::kNorm;
    add.rows = own_rows_;
    add.what = AddOp{.y = sum.y, .x = Value::kProjected, .width = sum.width};
    ops_.push_back(add);
  }

  void append_on_own(Op op) {
    op.rows = own_rows_;
    ops_.push_back(op);
    std::visit(
        [&](const auto& what) {
          visit_values(
              what, [](const Value&) {}, [&](const Value& value) { is_own(value) = true; });
        },
        op.what);
  }

  // A product that added to `hidden`, on the first rank, or experts, which always add.
  void append_addend(Op op, Value hidden) {
    if (auto* product = std::get_if<ProductOp>(&op.what)) product->adds = false;
    if (auto* experts = std::get_if<ExpertsOp>(&op.what)) {
      Op clear = op;
      clear.part = step_part::kRanks;
      clear.what = ClearOp{.y = Value::kProjected, .width = experts->shape.width};
      append_on_all(clear);
    }
    rename_value(op, hidden, Value::kProjected);
    append_on_all(op);
  }

  void append_on_all(const Op& op) {
    const auto gather = [&](const Value& value) {
      if (!is_own(value)) return;
      ops_.push_back({.part = step_part::kRanks,
                      .layer = op.layer,
                      .rows = rows_,
                      .what = GatherOp{.y = value, .width = width_, .own_rows = own_rows_}});
      is_own(value) = false;
    };
    const auto write = [&](const Value& value) { is_own(value) = false; };
    std::visit([&](const auto& what) { visit_values(what, gather, write); }, op.what);
    ops_.push_back(op);
  }

  const uint32_t rows_, own_rows_;
  uint32_t width_ = 0;  // of all values that are divided
  bool picked_ = false;
  std::array<bool, kValueCount> own_ = {};
  std::vector<Op> ops_;
};

// Before an adding sum there is what it adds, and after it a norm, which does the adding.
bool is_known_addition(std::span<const Op> ops, size_t index, Value y) {
  if (index == 0 || index + 1 == ops.size()) return false;
  const Op& before = ops[index - 1];
  const auto* product = before.as<ProductOp>();
  const auto* experts = before.as<ExpertsOp>();
  const auto* norm = ops[index + 1].as<NormOp>();
  return ((product != nullptr && product->y == y) || (experts != nullptr && experts->y == y)) &&
         norm != nullptr && norm->x == y;
}

}  // namespace

bool can_divide_rows(std::span<const Op> ops) {
  bool adds = false, uses_projected = false, picked = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (const SumOp* sum = adding_sum(ops[i])) {
      adds = true;
      if (!is_known_addition(ops, i, sum->y)) return false;
    }
    if (const ClearOp* clear = ops[i].as<ClearOp>()) {
      const bool known = i + 2 < ops.size() && ops[i + 1].as<ExpertsOp>() != nullptr &&
                         adding_sum(ops[i + 2]) != nullptr && adding_sum(ops[i + 2])->y == clear->y;
      if (!known) return false;
    }
    if (ops[i].as<PickOp>() != nullptr)
      picked = true;
    else if (picked && names_value(ops[i], Value::kHidden))
      return false;
    uses_projected = uses_projected || names_value(ops[i], Value::kProjected);
  }
  return !(adds && uses_projected);
}

std::vector<Op> divide_rows(std::vector<Op> ops, const TensorShard& shard, uint32_t rows) {
  RowDivider divider(shard, rows);
  for (size_t i = 0; i < ops.size(); ++i)
    divider.add(ops[i], i + 1 < ops.size() ? &ops[i + 1] : nullptr);
  return divider.take();
}

}  // namespace hearth
