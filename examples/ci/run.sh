#!/bin/sh
# A CI step in plain shell: run gpu-tests.sh on a GPU, and end as it ended.
#
#   examples/ci/run.sh KEY
#
# KEY names this attempt of the pipeline. A step that is repeated with it after its connection broke, or its
# runner was restarted, finds the job that it had submitted, instead of a second one. --lease ends the job when
# the runner is killed and nobody waits any more; --start-timeout gives up when the cluster is full for long.
set -u
key=${1:?expected a key, such as the number of the pipeline}
here=$(dirname "$0")

gpuq run --key "$key" --lease "${LEASE:-2m}" --start-timeout "${START_TIMEOUT:-1h}" "$here/gpu-tests.sh"
code=$?
# Codes below 248 are the job's own.
case $code in
248) echo "it never started: there was no GPU for it in time" >&2 ;;
249) echo "it was refused: see the message above" >&2 ;;
250) echo "the infrastructure failed, not the tests: run the pipeline again" >&2 ;;
251) echo "it took longer than its time limit" >&2 ;;
252) echo "somebody cancelled it" >&2 ;;
253 | 254 | 255) echo "gpuq could not follow it: run this step again with the same key" >&2 ;;
esac
exit $code
