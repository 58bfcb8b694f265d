#include "engine/program/fusions.h"

#include <algorithm>
#include <optional>

#include "engine/ops/attention.h"
#include "engine/program/op_values.h"

namespace hearth {
namespace {

bool reads_value(const PlannedOp& op, Value value) {
  bool found = false;
  const auto compare = [&](const Value& read) { found |= read == value; };
  std::visit([&](const auto& what) { visit_values(what.op, compare, [](const Value&) {}); },
             op.what);
  const PlannedNorm* norm = op.as<PlannedNorm>();
  return found || (norm != nullptr && norm->addend && norm->addend->value == value);
}

bool writes_value(const PlannedOp& op, Value value) {
  bool found = false;
  const auto compare = [&](const Value& written) { found |= written == value; };
  std::visit(
      [&](const auto& what) {
        visit_values(
            what.op, [](const Value&) {}, compare);
      },
      op.what);
  return found;
}

// Removes the ops with these indices, which ascend.
void remove(PlannedOps& ops, const std::vector<size_t>& indices) {
  auto next = indices.begin();
  size_t index = 0;
  std::erase_if(ops, [&](const PlannedOp&) {
    const bool found = next != indices.end() && *next == index++;
    if (found) ++next;
    return found;
  });
}

// The ops that read `value` as op `index` wrote it.
std::vector<size_t> readers_of(const PlannedOps& ops, size_t index, Value value) {
  std::vector<size_t> readers;
  for (size_t i = index + 1; i < ops.size(); ++i) {
    if (reads_value(ops[i], value)) readers.push_back(i);
    if (writes_value(ops[i], value)) break;
  }
  return readers;
}

// The product that alone reads `value` as op `index` wrote it; null if there is no such product.
PlannedProduct* only_reader(PlannedOps& ops, size_t index, Value value) {
  const std::vector<size_t> readers = readers_of(ops, index, value);
  return readers.size() == 1 ? ops[readers.front()].as<PlannedProduct>() : nullptr;
}

// The form of x that all kernels of a product read.
RowForm preferred_form(const PlannedProduct& product) {
  const RowForm form = product.segments.front().plan.form;
  const bool agree = std::ranges::all_of(
      product.segments, [&](const MatmulChoice& choice) { return choice.plan.form == form; });
  return agree && can_write_form(form, product.segments.front().shape.inputs) ? form
                                                                              : RowForm::kFloats;
}

// The form that all readers of a value prefer; floats unless all of them are products.
RowForm preferred_form(const PlannedOps& ops, const std::vector<size_t>& readers) {
  std::optional<RowForm> form;
  for (const size_t reader : readers) {
    const PlannedProduct* product = ops[reader].as<PlannedProduct>();
    const RowForm wanted = product != nullptr ? preferred_form(*product) : RowForm::kFloats;
    if (form.value_or(wanted) != wanted) return RowForm::kFloats;
    form = wanted;
  }
  return form.value_or(RowForm::kFloats);
}

// Whether the product has one segment, whose kernel can share a norm.
bool can_share_norm(const PlannedProduct& product) {
  return product.segments.size() == 1 && product.segments.front().plan.can_share_norm;
}

// Whether the product can norm its rows itself.
bool can_norm(const PlannedProduct& product) {
  return std::ranges::all_of(product.segments,
                             [](const MatmulChoice& choice) { return choice.plan.can_norm; });
}

// The last norm of `value` before op `index` in its layer; empty if there is none.
std::optional<size_t> norm_before(const PlannedOps& ops, size_t index, Value value) {
  const uint32_t layer = ops[index].layer;
  for (size_t i = index; i-- > 0 && ops[i].layer == layer;)
    if (const auto* norm = ops[i].as<PlannedNorm>(); norm != nullptr && norm->op.x == value)
      return i;
  return std::nullopt;
}

// Heads `first` and on, among all outputs of the products that left the partial sums.
OutputPlace place_in_parts(const PartsPlan& parts, uint32_t first) {
  return {.offset = uint64_t{first} * 4,
          .bytes = parts.bytes - uint64_t{first} * 4,
          .stride = parts.row_stride,
          .column = first};
}

void add_parts(const PartsPlan& parts, PlannedRopeKv& rope) {
  RopeKvShape& shape = rope.op.shape;
  const uint32_t q = shape.heads * shape.head_size, kv = shape.kv_heads * shape.head_size;
  shape.parts = parts.splits;
  shape.partial_stride = parts.split_stride;
  rope.parts = parts;
  rope.q = place_in_parts(parts, 0);
  rope.k = place_in_parts(parts, q);
  rope.v = place_in_parts(parts, q + kv);
}

}  // namespace

void add_in_norms(PlannedOps& ops) {
  std::vector<size_t> added;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const PlannedAdd* add = ops[i].as<PlannedAdd>();
    PlannedNorm* norm = ops[i + 1].as<PlannedNorm>();
    if (add == nullptr || norm == nullptr || norm->op.x != add->op.y) continue;
    norm->addend = Addend{.value = add->op.x};
    added.push_back(i);
  }
  remove(ops, added);
}

void leave_partial_sums(uint64_t scratch_bytes, PlannedOps& ops) {
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    PlannedProduct* product = ops[i].as<PlannedProduct>();
    if (product == nullptr || product->has_bias || product->op.soft_cap != 0) continue;
    PlannedNorm* norm = ops[i + 1].as<PlannedNorm>();
    PlannedRopeKv* rope = ops[i + 1].as<PlannedRopeKv>();
    const bool for_norm =
        norm != nullptr && product->op.adds && norm->op.x == product->op.y && !norm->addend;
    const bool for_rope = rope != nullptr && !product->op.adds && rope->op.qkv == product->op.y;
    if (!for_norm && !for_rope) continue;
    product->parts = plan_matmul_parts(product->segments, scratch_bytes);
    if (!product->parts) continue;
    if (for_norm)
      norm->addend = Addend{.parts = product->parts};
    else
      add_parts(*product->parts, *rope);
  }
}

void leave_expert_results(PlannedOps& ops) {
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    PlannedExperts* experts = ops[i].as<PlannedExperts>();
    PlannedNorm* norm = ops[i + 1].as<PlannedNorm>();
    if (experts == nullptr || norm == nullptr || norm->op.x != experts->op.y || norm->addend)
      continue;
    experts->parts = plan_expert_parts(experts->plan, experts->op.shape);
    if (experts->parts) norm->addend = Addend{.parts = experts->parts};
  }
}

void write_preferred_forms(const AttentionPlan& attention, PlannedOps& ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    RowForm* written = nullptr;
    Value value{};
    if (auto* norm = ops[i].as<PlannedNorm>()) {
      written = &norm->shape.form;
      value = norm->op.y;
    } else if (auto* attended = ops[i].as<PlannedAttention>()) {
      written = &attended->form;
      value = attended->op.y;
    } else if (auto* activation = ops[i].as<PlannedActivation>()) {
      written = &activation->shape.form;
      value = activation->op.y;
    } else {
      continue;
    }
    std::vector<size_t> readers = readers_of(ops, i, value);
    // Rows are sent in the form that this rank's products read; a rank that reads another form
    // converts them.
    PlannedGather* gather =
        readers.size() == 1 ? ops[readers.front()].as<PlannedGather>() : nullptr;
    if (gather != nullptr) readers = readers_of(ops, readers.front(), value);
    const RowForm form = preferred_form(ops, readers);
    if (form == RowForm::kFloats) continue;
    if (ops[i].as<PlannedAttention>() != nullptr && !can_write(attention, form)) continue;
    *written = form;
    if (gather != nullptr) gather->form = form;
    for (const size_t reader : readers) ops[reader].as<PlannedProduct>()->form = form;
  }
}

void gate_in_products(PlannedOps& ops) {
  std::vector<size_t> gated;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    PlannedProduct* product = ops[i].as<PlannedProduct>();
    const PlannedActivation* activation = ops[i + 1].as<PlannedActivation>();
    if (product == nullptr || activation == nullptr || activation->op.x != product->op.y) continue;
    if (product->segments.size() != 1 || product->has_bias || product->op.adds ||
        product->op.soft_cap != 0 || activation->op.width % 4 != 0 ||
        readers_of(ops, i, product->op.y).size() != 1)
      continue;
    const MatmulPlan& plan = product->segments.front().plan;
    const bool halves = activation->shape.form == RowForm::kHalves;
    if (!plan.can_gate || (halves && plan.form != RowForm::kHalves)) continue;
    product->gate = activation->op.activation;
    product->y_form = activation->shape.form;
    product->op.y = activation->op.y;
    gated.push_back(i + 1);
  }
  remove(ops, gated);
}

void norm_in_products(PlannedOps& ops) {
  std::vector<size_t> normed;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const PlannedNorm* norm = ops[i].as<PlannedNorm>();
    if (norm == nullptr || norm->addend) continue;
    PlannedProduct* product = only_reader(ops, i, norm->op.y);
    if (product == nullptr || product != ops[i + 1].as<PlannedProduct>()) continue;
    if (!can_norm(*product)) continue;
    product->norm = RowNorm{.weight = norm->op.weight, .epsilon = norm->op.epsilon};
    product->op.x = norm->op.x;
    product->form = RowForm::kFloats;
    normed.push_back(i);
  }
  remove(ops, normed);
}

void norm_in_experts(PlannedOps& ops) {
  std::vector<size_t> normed;
  for (size_t i = 0; i + 2 < ops.size(); ++i) {
    const PlannedNorm* norm = ops[i].as<PlannedNorm>();
    PlannedProduct* router = ops[i + 1].as<PlannedProduct>();
    PlannedExperts* experts = ops[i + 2].as<PlannedExperts>();
    if (norm == nullptr || norm->addend || router == nullptr || experts == nullptr ||
        router->op.x != norm->op.y || experts->op.x != norm->op.y ||
        readers_of(ops, i, norm->op.y).size() != 2 || !experts->plan.can_norm() ||
        !can_norm(*router))
      continue;
    router->norm = experts->norm = RowNorm{.weight = norm->op.weight, .epsilon = norm->op.epsilon};
    router->op.x = experts->op.x = norm->op.x;
    normed.push_back(i);
  }
  remove(ops, normed);
}

void share_norms(PlannedOps& ops) {
  std::vector<size_t> shared;
  for (size_t i = 1; i + 1 < ops.size(); ++i) {
    const PlannedNorm* norm = ops[i].as<PlannedNorm>();
    PlannedProduct* first = ops[i - 1].as<PlannedProduct>();
    if (norm == nullptr || norm->addend || first == nullptr || !first->op.adds ||
        first->op.y != norm->op.x || ops[i - 1].layer != ops[i].layer)
      continue;
    PlannedProduct* second = only_reader(ops, i, norm->op.y);
    const std::optional<size_t> earlier = norm_before(ops, i - 1, norm->op.x);
    if (second == nullptr || second != ops[i + 1].as<PlannedProduct>() ||
        ops[i + 1].layer != ops[i].layer || !earlier || std::ranges::count(shared, *earlier) > 0 ||
        !can_share_norm(*first) || !can_share_norm(*second))
      continue;
    ops[*earlier].as<PlannedNorm>()->keeps_scales = true;
    first->begins = SharedNorm{.weight = norm->op.weight,
                               .rows = norm->op.y,
                               .groups = first->segments.front().plan.multiply.groups.y,
                               .epsilon = norm->op.epsilon};
    second->finishes = first->begins;
    second->form = RowForm::kHalves;
    shared.push_back(i);
  }
  remove(ops, shared);
}

void rope_in_attention(const AttentionPlan& attention, PlannedOps& ops) {
  if (!attention.ropes) return;
  std::vector<size_t> roped;
  for (size_t i = 0; i + 1 < ops.size(); ++i) {
    const PlannedRopeKv* rope = ops[i].as<PlannedRopeKv>();
    PlannedAttention* attended = ops[i + 1].as<PlannedAttention>();
    if (rope == nullptr || attended == nullptr || attended->op.q != rope->op.q) continue;
    attended->rope = *rope;
    roped.push_back(i);
  }
  remove(ops, roped);
}

}  // namespace hearth
