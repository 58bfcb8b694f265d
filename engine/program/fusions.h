// The fusions, each a function over the planned ops of a step: where a pattern of ops and their
// kernels allow it, one op takes over the work of another, which leaves the list. A fusion depends
// on the ops and their plans alone, not on what they are for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/plan.h"

namespace hearth {

using PlannedOps = std::vector<PlannedOp>;

// A norm does the add before it. Not optional: there is no kernel that only adds.
void add_in_norms(PlannedOps& ops);

// Split-k products leave their partial sums to the norm or rope that reads the results, which adds
// them up as it reads them.
void leave_partial_sums(uint64_t scratch_bytes, PlannedOps& ops);

// Experts that are not grouped leave their results to the norm that reads the sum.
void leave_expert_results(PlannedOps& ops);

// Rows are written in the form that the products reading them prefer, so that none converts them.
void write_preferred_forms(const AttentionPlan& attention, PlannedOps& ops);

// A product of gate and up also combines them.
void gate_in_products(PlannedOps& ops);

// A product of a single row, or one whose workgroups have a row each, norms its rows itself.
void norm_in_products(PlannedOps& ops);

// A router and its experts norm their rows themselves.
void norm_in_experts(PlannedOps& ops);

// Two products of one layer share the norm between them, if a norm of the same rows came before.
void share_norms(PlannedOps& ops);

// Attention does rope and the KV write.
void rope_in_attention(const AttentionPlan& attention, PlannedOps& ops);

}  // namespace hearth
