#!/usr/bin/env bash
# What a CUDA GPU does with the preset `full`, in one command and one folder:
#
#     tests/bench/gpu.sh [FOLDER] [GPU]
#
# profile.txt, profile.json   one configuration, by part, with the bottleneck
# trace.json.gz               two updates under torch's profiler (open it in https://ui.perfetto.dev)
# sweep.txt, sweep.json       matches, minibatches, threads, precision; recommended.toml is the best
# run.txt, run/               a whole run of 10,000,000 steps (STEPS=... for another) with its clock
# gpu_busy.csv, summary.txt   steps/s and GPU busy share while it trained, and of the whole command
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)"
out="${1:-$root/runs/gpu-$(date +%Y%m%d-%H%M%S)}"
gpu="${2:-0}"
steps="${STEPS:-10000000}"
preset="${PRESET:-full}"
"$root/bin/bootstrap" --all
if [[ ! "$gpu" =~ ^[0-9]+$ ]] || ! "$root/.venv/bin/python" -c "import sys, torch; sys.exit(not $gpu < torch.cuda.device_count())"; then
    echo "gpu.sh: there is no CUDA GPU $gpu that torch can use on this machine: run it on one that has." >&2
    exit 1
fi
mkdir -p "$out"
out="$(cd "$out" && pwd -P)"
cd "$root"

{
    date -u
    git rev-parse HEAD 2>/dev/null || true
    uname -a
    nvidia-smi
} >"$out/machine.txt" 2>&1 || true

echo "gpu.sh: profile of $preset" >&2
bin/league profile --preset "$preset" --gpu "$gpu" --seconds 60 --output "$out/profile.json" \
    --trace "$out/trace.json.gz" | tee "$out/profile.txt"
echo "gpu.sh: sweep" >&2
rm -f "$out/recommended.toml"
bin/league profile --preset "$preset" --gpu "$gpu" --sweep --output "$out/sweep.json" \
    --write-preset "$out/recommended.toml" | tee "$out/sweep.txt"

echo "gpu.sh: a run of $steps steps" >&2
nvidia-smi --id="$gpu" --query-gpu=timestamp,utilization.gpu,memory.used --format=csv,noheader,nounits \
    --loop-ms=500 >"$out/gpu_busy.csv" &
meter=$!
trap 'kill "$meter" 2>/dev/null || true' EXIT
before="$(date +%s.%N)"
bin/start-league --preset "$preset" --gpu "$gpu" --steps "$steps" --headless --run-dir "$out/run" 2>&1 |
    tee "$out/run.txt"
after="$(date +%s.%N)"
kill "$meter"

{
    awk -v a="$before" -v b="$after" -v n="$steps" 'BEGIN {
        printf "%d steps in %.1f s from start to end of the command (the last gauntlet too): %.0f steps/s\n",
            n, b - a, n / (b - a)
    }'
    .venv/bin/python tests/bench/gpu_summary.py "$out/run" "$out/gpu_busy.csv"
} | tee "$out/summary.txt"
echo "gpu.sh: all of it is in $out" >&2
