#!/bin/sh
# Every scenario must hold; and the judge itself must be able to say no.
set -eu
sim=gpuqd/gpuq-sim
dir=${srcdir:-.}/tests/scenario
test -x "$sim" || exit 99

"$sim" check "$dir"/*.yaml

wrong=$(mktemp)
trap 'rm -f "$wrong"' EXIT
sed 's/started: \[p\]/started: [p, nobody]/' "$dir/life.yaml" >"$wrong"
if "$sim" check "$wrong" >/dev/null; then
	echo "gpuq-sim check passes what does not hold" >&2
	exit 1
fi
"$sim" run --json "$dir"/*.yaml >/dev/null && { echo "refused cases exit 0" >&2; exit 1; }
"$sim" run --json "$dir/packing.yaml" | grep -q '"id":"packing-joins","cycles":1,"stable":true'
"$sim" shares "$dir/order.yaml" >/dev/null
