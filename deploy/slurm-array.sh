#!/bin/bash
# 100,000 episodes with pictures on 64 tasks of a Slurm array: sbatch deploy/slurm-array.sh
# Each task does its share of the shards, and the last one joins them. Submit again to go on where it stopped.
# OUT is a folder that all nodes see.
#SBATCH --job-name=manikin
#SBATCH --array=0-63
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=08:00:00
#SBATCH --output=%x-%A_%a.log
set -euo pipefail

: "${OUT:?set OUT to a folder on shared storage}"
export MANIKIN_CORES="${SLURM_CPUS_PER_TASK:-1}"

srun manikin collect PickCube-v2 --episodes 100000 --num-envs 16 --observe rgb \
    --out "$OUT/pick.h5" --on slurm-array
