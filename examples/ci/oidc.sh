#!/bin/sh
# GPU tests from a hosted runner of GitHub Actions, over TLS, with the runner's id token: no secret is stored.
#
#   examples/ci/oidc.sh KEY
#
# The job of the workflow needs `permissions: {id-token: write}`; GPUQ_SERVER names the server and its pin, and
# gpuqd.yaml has the rule that is printed in gpuqd.yaml(5). The token holds for minutes and the job for hours: when
# it expires, gpuq exits with 255, and this goes on waiting with a new one. KEY identifies this attempt: a step that
# is repeated finds its job.
set -u
key=${1:?expected a key, such as the number of the run}
here=$(dirname "$0")
export GPUQ_TOKEN

fresh() {
	GPUQ_TOKEN=$(curl -sSf -H "Authorization: bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
		"$ACTIONS_ID_TOKEN_REQUEST_URL&audience=gpuq" | sed 's/.*"value" *: *"\([^"]*\)".*/\1/')
	[ -n "$GPUQ_TOKEN" ]
}

fresh || exit 255
id=$(gpuq submit --parsable --key "$key" --label "ci=$key" "$here/gpu-tests.sh") || exit
echo "job $id"
trap 'fresh && gpuq cancel "$id"; exit 252' INT TERM HUP
failed=0
while [ $failed -lt 5 ]; do
	began=$(date +%s)
	gpuq wait "$id"
	code=$?
	[ $code = 255 ] || exit $code
	# Not a token that had expired, but a server that does not answer: give up in the end.
	[ $(($(date +%s) - began)) -ge 5 ] && failed=0 || failed=$((failed + 1))
	sleep 1
	fresh || exit 255
done
exit 255
