#!/bin/bash
# Makes Hearth's default model from the corpus to the model card, in two stages that can run in two calls.
#
#   all.sh --stage 1 --corpus DIR --peer stories15M-Q8_0.gguf --work DIR --out DIR [--seconds 540]
#   all.sh --stage 2 --corpus DIR --peer stories15M-Q8_0.gguf --work DIR --out DIR [--seconds 540] [--resume DIR]
#
# Stage 1: more stories, data, tokenizer, tiny model, and a rehearsal of stage 2 (the large model trained for a minute, exported
# and judged). Stage 2: trains the large model for the time that is left, exports and evaluates it, writes the model card.
# --work keeps what stage 2 needs. If it is lost, --resume names a folder with the files stage 1 wrote into --out
# (stage1.tar and more.tsv.xz.*), and stage 2 makes the data again from them. With --again, stage 2 also trains the tiny model
# again, in parallel with the large one, for a recipe that has changed since stage 1 (the tokenizer stays).
# --seconds is the time for the whole stage. Training gets what the other steps leave: in stage 1 those take --sample,
# --tiny-seconds and --probe (0: none) seconds, in stage 2 --reserve seconds. --small tries everything on a CPU.
# Files in --out are split into parts under 15 MiB; join a model with: cat NAME.gguf.* > NAME.gguf
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
stage=1 corpus='' peer='' work='' out='' seconds=540 resume='' small='' sample=120 tiny_seconds=85 probe_most=75 reserve=80 again=''
while [ $# -gt 0 ]; do
  case $1 in
    --stage) stage=$2; shift 2;; --corpus) corpus=$2; shift 2;; --peer) peer=$2; shift 2;; --work) work=$2; shift 2;;
    --out) out=$2; shift 2;; --seconds) seconds=$2; shift 2;; --resume) resume=$2; shift 2;; --sample) sample=$2; shift 2;;
    --tiny-seconds) tiny_seconds=$2; shift 2;; --probe) probe_most=$2; shift 2;; --reserve) reserve=$2; shift 2;;
    --small) small=1; shift;; --again) again=1; shift;;
    *) echo "all.sh: unknown argument $1" >&2; exit 2;;
  esac
done
for need in corpus peer work out; do
  [ -n "${!need}" ] || { echo "all.sh: --$need is missing" >&2; exit 2; }
done
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
python=${PYTHON:-python3}
mkdir -p "$work" "$out"
begin=$(date +%s)
left() { echo $((seconds - ($(date +%s) - begin))); }
run() { echo "== $(($(date +%s) - begin)) s: $1"; shift; "$python" "$@"; }
parts() { split -b 15m -d "$1" "$out/$(basename "$1")."; }
size=storyteller tiny=tiny data_options=() train_options=() eval_options=()
if [ -n "$small" ]; then
  size=toy tiny=toy tiny_seconds=30 sample=2
  data_options=(--limit 3000 --plots 640 --talk 640 --jobs 1) train_options=(--rows 6 --jobs 1) eval_options=(--limit 2 --seeds 1)
fi
minutes() { local s=$(( $1 < 20 ? 20 : $1 )); printf '%d.%02d' $((s / 60)) $((s % 60 * 100 / 60)); }
make_data() {
  local more=$work/more.tsv
  [ -f "$more" ] || more=$more.xz
  run 'data' "$here/make_data.py" --corpus "$corpus" --out "$work/data" --more "$more" "${data_options[@]}"
}
train() { # size seconds name
  run "train $1 for $2 s" "$here/train.py" --data "$work/data" --tokenizer "$work/tokenizer.json" --size "$1" \
    --minutes "$(minutes "$2")" --out "$work/$3.pt" "${train_options[@]}"
}
export_model() { # checkpoint name
  run "export $2" "$here/export.py" --checkpoint "$work/$1.pt" --tokenizer "$work/tokenizer.json" --out "$work/export" --name "$2" --check
}
judge() { # name curve folder
  run "judge $1" "$here/evaluate.py" --gguf "$work/export/$1-Q8_0.gguf" --tiny "$work/export/hearth-tiny-Q8_0.gguf" --peer "$peer" \
    --data "$work/data" --curve "$work/$2.csv" --tiny-curve "$work/tiny.csv" --out "$3" "${eval_options[@]}"
}

if [ "$stage" = 1 ]; then
  batch=4096; [ -z "$small" ] || batch=4
  run 'more stories' "$here/sample_more.py" --gguf "$peer" --out "$work/more.tsv" --seconds "$sample" --batch $batch
  make_data
  run 'tokenizer' "$here/train_tokenizer.py" --data "$work/data" --out "$work/tokenizer.json"
  train "$tiny" $tiny_seconds tiny
  export_model tiny hearth-tiny || echo 'EXPORT CHECK FAILED: look above'
  # Save what stage 2 needs on another machine before anything else can go wrong.
  "$python" "$here/pack.py" "$work/more.tsv"
  parts "$work/more.tsv.xz"
  cp "$work/data/stats.json" "$work/stats.json"
  tar -C "$work" -cf "$out/stage1.tar" tokenizer.json tiny.pt tiny.csv tiny.json stats.json export/hearth-tiny-Q8_0.gguf
  echo "== $(($(date +%s) - begin)) s: probe of stage 2"
  if [ "$probe_most" -gt 0 ] && { [ "$(left)" -gt 60 ] || [ -n "$small" ]; }; then
    probe=$(( $(left) - 45 )); [ $probe -lt "$probe_most" ] || probe=$probe_most; [ -z "$small" ] || probe=30
    eval_options=(--limit 6 --seeds 1)
    (train "$size" $probe probe && export_model probe probe && judge probe probe "$work/probe" && cp "$work/probe/samples.md" "$out/probe.md") \
      || echo 'PROBE FAILED: look above before running stage 2'
  fi
else
  if [ ! -f "$work/tokenizer.json" ]; then
    [ -n "$resume" ] || { echo "all.sh: $work has no tokenizer.json; name stage 1's results with --resume" >&2; exit 2; }
    tar -C "$work" -xf "$resume/stage1.tar"
    cat "$resume"/more.tsv.xz.* > "$work/more.tsv.xz"
  fi
  [ -f "$work/data/held_out.txt" ] || make_data
  [ -z "$small" ] || reserve=10
  if [ -n "$again" ]; then
    run 'encode' "$here/train.py" --data "$work/data" --tokenizer "$work/tokenizer.json" --size "$size" --out "$work/none.pt" \
      --encode-only "${train_options[@]}"
    { train "$tiny" "$tiny_seconds" tiny-again && for end in pt csv json; do mv "$work/tiny-again.$end" "$work/tiny.$end"; done &&
      export_model tiny hearth-tiny; } > "$work/tiny.log" 2>&1 &
  fi
  train "$size" $(( $(left) - reserve )) storyteller
  if [ -n "$again" ]; then
    wait $! || echo 'THE TINY MODEL FAILED: look below'
    cat "$work/tiny.log"
  fi
  export_model storyteller hearth-storyteller || echo 'EXPORT CHECK FAILED: look above'
  parts "$work/export/hearth-storyteller-Q8_0.gguf"
  cp "$work/export/hearth-tiny-Q8_0.gguf" "$out/"
  judge hearth-storyteller storyteller "$work/judged" || echo 'JUDGING FAILED: the model itself is written'
  tar -C "$work" -cf "$out/results.tar" $(cd "$work" && ls -d judged/* storyteller.csv storyteller.json tiny.csv tiny.json tokenizer.json data/stats.json data/held_out*.txt)
  cp "$work"/judged/MODEL_CARD.md "$work"/judged/samples.md "$out/" || true
fi
echo "== done after $(($(date +%s) - begin)) s"
ls -l "$out"
"$python" - "$work" <<'EOF'
import glob, json, os, sys
work = sys.argv[1]
for f in sorted(glob.glob(os.path.join(work, '*.json'))):
    j = json.load(open(f))
    if 'valid_loss' in j:
        print(f"{os.path.basename(f):20s} {j['parameters'] / 1e6:6.2f} M  {j['tokens'] / 1e6:7.1f} M tokens  {j['tokens_per_s']:9,d}/s  "
              f"{j['epochs']} epochs  train {j['train_loss']}  valid {j['valid_loss']}")
for f in sorted(glob.glob(os.path.join(work, '*', 'evaluation.json'))):
    j = json.load(open(f))
    print(f"{f}: bits per byte {j['bits per byte']}, passed {j['pass by seed']} of {j['requests']}, greedy {j['pass greedy']}, "
          f"faults {j['faults over all seeds']}")
EOF
