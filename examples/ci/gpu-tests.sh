#!/bin/sh
# The job of the CI examples beside this file.
#GPUQ --job-name=gpu-tests --gpus=1 --cpus=1 --time=30m
#GPUQ --retry=1:infra
set -eu
echo "testing ${CI_COMMIT:-a working tree} on ${GPUQ_NODE_NAME:-?}, devices ${CUDA_VISIBLE_DEVICES:-none}"
${GPU_TEST_COMMAND:-true}
