#!/bin/sh
# A CI step in plain shell: run gpu-tests.sh on a GPU, and exit with its exit code.
#
#   examples/ci/run.sh KEY
#
# KEY identifies this attempt of the pipeline. A step that is repeated with the same key, after a broken
# connection or a restart of its runner, finds the job it had submitted instead of creating a second one. --lease
# ends the job when the runner was killed; --start-timeout gives up when the cluster stays full.
set -u
key=${1:?expected a key, such as the number of the pipeline}
here=$(dirname "$0")

gpuq run --key "$key" --lease "${LEASE:-2m}" --start-timeout "${START_TIMEOUT:-1h}" "$here/gpu-tests.sh"
code=$?
# Codes below 248 are the job's own.
case $code in
248) echo "the job did not start in time: no GPU was free" >&2 ;;
249) echo "the job was refused: see the message above" >&2 ;;
250) echo "the infrastructure failed, not the tests: run the pipeline again" >&2 ;;
251) echo "the job reached its time limit" >&2 ;;
252) echo "the job was cancelled" >&2 ;;
253 | 254 | 255) echo "gpuq lost track of the job: run this step again with the same key" >&2 ;;
esac
exit $code
