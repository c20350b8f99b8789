#!/bin/sh
# Every scenario must hold, each a test of its own; and the judge itself must be able to say no.
set -u
sim=${top_builddir:-.}/gpuqd/gpuq-sim
dir=${top_srcdir:-.}/tests/scenario
test -x "$sim" || { echo "Bail out! $sim is not there"; exit 99; }
out=$(mktemp) && wrong=$(mktemp) || exit 99
trap 'rm -f "$out" "$wrong"' EXIT

n=0
say() { # STATUS WHAT
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

"$sim" check "$dir"/*.yaml "$dir"/../../examples/two-teams.yaml >"$out"
say $? "gpuq-sim check exits 0"
awk '/^ok / { sub(/^ok */, ""); print "ok - " $0 } /^FAIL / { sub(/^FAIL */, ""); print "not ok - " $0 }
	/^  / { print "#" $0 }' "$out"
cases=$(grep -cE '^(ok|FAIL) ' "$out")
tail -n 1 "$out" | grep -qx "$cases passed, 0 failed"
say $? "the last line counts the cases"

sed 's/started: \[p\]/started: [p, nobody]/' "$dir/life.yaml" >"$wrong"
"$sim" check "$wrong" >"$out"
[ $? = 1 ] && grep -q '^FAIL' "$out" && grep -q 'expected \["p","nobody"\]' "$out"
say $? "what does not hold is told, and the exit status is 1"

"$sim" run --json "$dir/refused.yaml" >"$out"
[ $? = 1 ] && grep -q '^{"id":"refused-queue","error":' "$out" && grep -q '"started":\["p"\]' "$out"
say $? "a refused case is an object with an error, and the others go on"

"$sim" run --json "$dir/packing.yaml" | grep -q \
	'"id":"packing-joins","cycles":1,"stable":true,"started":\["a2"\],"running":\["a1"\],"preempted":\[\]'
say $? "run --json prints one object a case"

"$sim" run "$dir/../../examples/two-teams.yaml" >"$out"
grep -q "requeue for s1: the preemptor is within its queue's quota, and the victim's queue was over its own (reclaim-quota)" "$out" &&
	grep -q 'claim  *s1 .*: speech 0 -> 2 (share 2, quota 4); vision 8 -> 6 (share 6, quota 4); spared: 2 within their queue.s entitlement, or not needed$' "$out"
say $? "run says who left, for whom, by what right and with which numbers"

"$sim" shares --json "$dir/order.yaml" |
	grep -q '"a":{"quota":3.0,"demand":20.0,"limit":null,"fair_share":9.0}'
say $? "shares --json prints the division"

"$sim" run --json "$dir/priority.yaml" | grep '"id":"priority-weights-in-proportion"' |
	grep -q '"priority":{"age":0,"fairshare":0,"size":0,"qos":950,"stretch":0,"boost":0,"nice":0,"total":950}'
say $? "run --json prints what a waiting job's priority is made of"

"$sim" shares --json "$dir/priority.yaml" | grep '"id":"fair-tree"' |
	grep -q '"users":{"u1":{"factor":0.6},"u2":{"factor":0.2},"u3":{"factor":0.4},"u4":{"factor":0.8},"u5":{"factor":1.0}}'
say $? "shares --json prints the users' factors"

"$sim" shares "$dir/priority.yaml" | grep -qx 'warning: quotas of default below root add up to 2, but there are 1'
say $? "shares tells of quotas that promise more than there is"

printf '%s\n' 'id: big' 'nodes: [{name: n, gpus: 1000, count: 2}]' 'queues: [{name: a, quota: 1250.5}]' \
	'pending: [{job: x, queue: a, array: {size: 1234}, tasks: [{gpus: 1}]}]' | "$sim" shares - |
	grep -qE '^a +1250.5 +1234 +- +1234$'
say $? "shares prints large amounts digit by digit"

cat >"$wrong" <<'END'
id: told
title: what happens
config: {now: 10}
nodes: [{name: n, gpus: 2}]
pending:
- {job: half, walltime: 5, tasks: [{gpus: 0.5}]}
- {job: wide, tasks: [{gpus: 4}]}
- {job: next, preemptible: false, tasks: [{gpus: 2}]}
steps:
- {event: advance, to: 15}
END
"$sim" run "$wrong" >"$out"
grep -qx 'told: what happens' "$out" && grep -qE 'half +n\[0\]\*0.5$' "$out" &&
	grep -qE 'wide +Unsatisfiable .*no node can hold its request' "$out" &&
	grep -qE 'next +Resources gpus: have 1, need 2 \(not enough free' "$out" &&
	grep -q 'planned to start at 15' "$out" && grep -qE 'queue +default +holds 0.5 \(share .*, quota unlimited\)' "$out" &&
	grep -qx ' after advance at 15' "$out" && grep -qE 'ended +half +timeout \(limit\)' "$out"
say $? "run says where, why not, until when, and what ended"

printf '%s\n' 'id: told' 'nodes: [{name: n, gpus: 2}]' 'expect: {detail: 5, allocated: [1], pendin: [x]}' |
	"$sim" check - >"$out"
[ $? = 1 ] && [ "$(grep -cE 'expected a map|no check is known for this key' "$out")" = 3 ]
say $? "what cannot be judged does not hold"

printf '%s\n' 'config: {now: 3}' 'cases: [{id: a}]' | "$sim" check - >"$out"
[ $? = 1 ] && grep -q ':1:9: config: belongs into a case, not beside cases' "$out"
say $? "keys beside cases are refused"

awk 'BEGIN {
	print "id: busy\nnodes: [{name: n, gpus: 8, count: 1000}]\npending:"
	for (i = 0; i < 9000; i++)
		print "- {job: j" i ", jobname: the-name-of-a-job-as-people-give-them-with-the-date-and-all-its-parameters-" i ", tasks: [{gpus: 1}]}"
}' | "$sim" run - | grep -c '^  started' >"$out"
grep -qx 8000 "$out"
say $? "what a busy daemon exports can be read"

echo 'cases: []' | "$sim" run - 2>"$out"
[ $? = 1 ] && grep -q 'there is no case in it' "$out"
say $? "a file without a case is refused"

"$sim" run --help >"$out" && grep -q '^usage: gpuq-sim check' "$out" &&
	"$sim" frobnicate "$dir/life.yaml" 2>&1 >/dev/null | grep -q 'no command frobnicate'
say $? "every command has help, and one that is not there is named"

"$sim" pack --help >"$out" && grep -q '^usage: gpuq-sim pack' "$out" && "$sim" trace --help >"$out" &&
	grep -q '^usage: gpuq-sim trace' "$out" && "$sim" run --jason "$dir/life.yaml" 2>&1 >/dev/null | grep -q 'run has no option --jason'
say $? "so have pack and trace, and an option that is not there is named"

"$sim" frobnicate "$dir/life.yaml" 2>/dev/null
[ $? = 2 ]
say $? "wrong usage exits 2"
echo "1..$((n + cases))"
