#!/usr/bin/env bash
# Proves a CUDA build on a machine with one or two GPUs: the tests, the recipe of the demo on one GPU, memory checks.
#   tools/gpu_first_steps.sh BUNDLE OUT [PART…]
# BUNDLE: what tools/gpu_bundle made. OUT: a folder for logs. PART: tests demo memcheck streams nan (default: all).
# Ends with a table; the exit code is the number of parts that failed.
set -uo pipefail
bundle=$(realpath "$1") out=$(realpath -m "$2")
shift 2
parts=("$@")
((${#parts[@]})) || parts=(tests demo memcheck streams nan)
mkdir -p "$out"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
recipe=recipes/wikitext-5d.toml
run() { "$bundle/run.sh" "$@"; }
failed=0
report=()

part() {
  local name=$1 from=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then report+=("ok      $name  $((SECONDS - from)) s")
  else
    report+=("FAILED  $name  $((SECONDS - from)) s")
    failed=$((failed + 1))
    tail -n 40 "$out/$name.log"
  fi
}

tests() { timeout 240 "$bundle/run.sh" test_cuda; }

# 16 rank threads on one GPU: 20 steps with saves, the second half again from the save at 10 with equal bits; one rank.
demo() {
  rm -rf "$out/runs" && mkdir -p "$out/runs/half/checkpoints"
  run penteract train $recipe --device cuda --set run.dir="$out/runs/whole" || return
  cp -r "$out/runs/whole/checkpoints/step-00000010" "$out/runs/half/checkpoints/"
  run penteract train $recipe --device cuda --set run.dir="$out/runs/half" || return
  run penteract verify "$out/runs/whole/checkpoints/step-00000020" || return
  python3 - "$out/runs" <<'END' || return
import json, sys
def losses(name):
    return {s["step"]: (s["loss"], s["grad_norm"]) for s in map(json.loads, open(f"{sys.argv[1]}/{name}/metrics.jsonl"))}
whole, half = losses("whole"), losses("half")
again = sorted(step for step in half if step > 10)
assert len(whole) == 20 and again == list(range(11, 21)), (sorted(whole), again)
assert all(half[s] == whole[s] for s in again), [(s, half[s], whole[s]) for s in again]
print("steps 11 to 20 after a resume: the same losses and norms, bit for bit")
END
  run penteract train $recipe --device cuda --layout tp=1 --set run.dir="$out/runs/one" || return
  rm -rf "$out/runs"/*/checkpoints "$out/runs"/*/cache
}

memcheck() {
  compute-sanitizer --tool memcheck --error-exitcode 9 "$bundle/run.sh" test_cuda --gtest_brief=1 \
    --gtest_filter='*Fp32EqualsTheCpu/0:*Fp32EqualsTheCpu/11:CudaComm.MessagesBothWaysAtOnce'
}

# Every kernel names its stream; 7 is the default stream.
streams() {
  timeout 120 ncu --metrics launch__grid_size --clock-control none --launch-count 1500 --kill yes "$bundle/run.sh" test_cuda --gtest_brief=1 \
    --gtest_filter='*Fp32EqualsTheCpu/9' >"$out/ncu.txt" 2>&1
  grep -oE 'Context [0-9]+, Stream [0-9]+' "$out/ncu.txt" | sort | uniq -c | sort -rn
  (($(grep -cE 'Context [0-9]+, Stream [0-9]+' "$out/ncu.txt") > 100)) || return 1
  ! grep -qE 'Stream 7,' "$out/ncu.txt"
}

# Weights thrown to infinity: steps are skipped, and the run ends with 6.
nan() {
  run penteract train $recipe --device cuda --set run.dir="$out/runs/nan" --set optimizer.lr=1e6 --set precision.recipe=fp32 \
    --set optimizer.clip_grad_norm=0.0 --set model.initializer_range=100.0 --set train.max_skipped_steps=2 \
    --set train.steps=40 --set checkpoint.every=0 --set eval.every=0
  local code=$?
  rm -rf "$out/runs/nan/checkpoints"
  echo "exit code $code"
  ((code == 6))
}

nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
for name in "${parts[@]}"; do part "$name" "$name"; done
grep -hE '(loss|bf16).*worst gradient|peak: account|tokens/s\), peak|reserved|steps 11 to 20|exit code|ERROR SUMMARY' "$out"/*.log
printf '%s\n' "${report[@]}"
exit "$failed"
