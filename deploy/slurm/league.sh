#!/usr/bin/env bash
# A league on nodes of a Slurm cluster. All nodes need this clone at the same path, where
# bin/bootstrap --all has run. They need no common folder if cluster.store names an object store.
#
# Not run: there was no Slurm to try it on. A test runs it with stand-ins for Slurm and Ray.
#
#   sbatch --nodes 4 deploy/slurm/league.sh --preset full --set cluster.store=s3://my-bucket/my-run
#   sbatch --nodes 4 deploy/slurm/league.sh --run-dir runs/full-1      # continues the run
#
# Slurm sends TERM ten minutes before the time limit. The league then writes checkpoints and ends.
#SBATCH --job-name=kumite
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --time=1-00:00:00
#SBATCH --signal=B:TERM@600
#SBATCH --output=kumite-%j.log
set -euo pipefail
cd "${KUMITE_ROOT:-${SLURM_SUBMIT_DIR:-.}}"
export PATH="$PWD/.venv/bin:$PATH"

# srun passes Ray's token on in the environment. It is never on a command line.
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN="$(head -c 32 /dev/urandom | base64)"
export RAY_AUTH_TOKEN

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head_ip="$(srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address)"
head_ip="${head_ip%% *}"
port=$((20000 + SLURM_JOB_ID % 10000))  # jobs on the same node differ
export RAY_ADDRESS="$head_ip:$port"

steps=()
on_node() {  # NODE, FLAGS OF ray start ...: starts Ray there, until this script ends
    local node="$1"
    shift
    srun --overlap --nodes=1 --ntasks=1 --nodelist="$node" \
        ray start --block --disable-usage-stats --num-cpus="${SLURM_CPUS_PER_TASK:-1}" "$@" &
    steps+=("$!")
}

trap 'kill "${steps[@]}" 2>/dev/null || true' EXIT

on_node "${nodes[0]}" --head --node-ip-address="$head_ip" --port="$port" --include-dashboard=false
for _ in $(seq 120); do
    ray status >/dev/null 2>&1 && break
    sleep 1
done
ray status >/dev/null || { echo "league.sh: Ray did not start on ${nodes[0]}" >&2; exit 1; }
for node in "${nodes[@]:1}"; do
    on_node "$node" --address="$RAY_ADDRESS"
done

# This script runs on the first node, so the matchmaker and the run's folder are there.
bin/start-league --engine ray --headless --no-dashboard --set security.host=0.0.0.0 \
    --set security.tokens=true "$@" &
league="$!"
trap 'kill -TERM "$league" 2>/dev/null || true' TERM  # bash lets its children ignore INT
status=0
wait "$league" || status="$?"
while kill -0 "$league" 2>/dev/null; do  # a signal has ended the wait, and the league goes on
    status=0
    wait "$league" || status="$?"
done
exit "$status"
