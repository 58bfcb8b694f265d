// One AttentionItem from start to end, for attention_rows.comp and attention_direct.comp: applies rope to
// the token if asked to, lets every subgroup process its runs of keys, and merges the subgroups.
//
// Include last; needs Run, Rows and Softmax and the kernel's functions on them: load_first_run(),
// load_run(), load_token(), run_base(), find_rows(), begin_softmax(), process_run(), emit_rows(); kStep,
// the keys from a run to the next.
#ifndef HEARTH_ATTENTION_ITEM_GLSL
#define HEARTH_ATTENTION_ITEM_GLSL

// Processes all of the subgroup's keys in the item. `run` is its first run.
void process_item(Work work, Run run, Rows rows, inout Softmax soft) {
  const uint last_key = work.item.key_end - 1;
  uint base = run_base(work);
  if (kDoubleBuffer != 0) {
    for (; base <= last_key; base += 2 * kStep) {
      Run next;
      load_run(work, run.first + kStep, next);
      process_run(run, rows, soft);
      if (base + kStep > last_key) break;
      load_run(work, next.first + kStep, run);
      process_run(next, rows, soft);
    }
  } else if (base <= last_key) {
    process_run(run, rows, soft);
    for (base += kStep; base <= last_key; base += kStep) {
      load_run(work, run.first + kStep, run);
      process_run(run, rows, soft);
    }
  }
}

void main() {
  const Work work = find_work();
  Run run;
  Rotation rotation;
  // Keys and values of earlier steps are in the cache already: load them before waiting.
  if (kFuseRope != 0 && work.rows > 0) {
    load_first_run(work, run);
    begin_token(work, rotation);
  }
  if (kFuseRope != 0) {
    chain_wait_fresh();  // it reads nothing of this step but the token's row of q, k and v
  } else {
    chain_wait();
  }
  if (work.rows > 0) {
    if (kFuseRope != 0) {
      rope_token(work, rotation);
      load_token(work, run);  // if it is in the first run: it was not in the cache when that was loaded
    } else {
      load_first_run(work, run);
    }
    Rows rows;
    find_rows(work, rows);
    Softmax soft;
    begin_softmax(soft);
    process_item(work, run, rows, soft);
    emit_rows(work, soft);
    merge_subgroups(work);
    merge_splits(work);
  }
  chain_done();
}

#endif
