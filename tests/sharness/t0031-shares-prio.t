#!/bin/sh
test_description='gpuq shares and gpuq prio: every term of whose turn it is'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start with a tree of queues' '
	cat >site.yaml <<-END &&
	version: 1
	queues:
	- {name: lab, quota: 4}
	- {name: small, parent: lab, quota: 1, limit: 1}
	- {name: big, parent: lab, quota: 3, weight: 2}
	- {name: other}
	END
	start_gpuqd --site site.yaml &&
	run=$(sh_job "sleep 300" -p big -g 3) && job_becomes "$run" RUNNING &&
	first=$(sh_job "sleep 300" -p big -g 2) && second=$(sh_job "sleep 300" -p big -g 2 --nice=5) &&
	wait_for 60 job_is "$second" reason Resources
'

test_expect_success 'queues stand below their parents, users below their queues' '
	gpuq shares -h -o queue,user | sed "s/ *$//" >got && me=$(id -un) &&
	cat >want <<-END &&
	lab
	  small
	  big
	  big   $me
	other
	END
	sed "s/big  *$me/big   $me/" got >trimmed && test_cmp want trimmed
'

# share QUEUE KEY: of the queue itself
share() {
	gpuq shares -s --json "$1" | /usr/bin/python3 -c "
import json, sys
for line in sys.stdin:
    o = json.loads(line)
    if o[\"queue\"] == \"$1\":
        print(o[\"$2\"])"
}

test_expect_success 'portions of weights and of devices are those of the site' '
	test "$(share big norm_shares | cut -c1-6)" = 0.6666 && test "$(share small norm_shares | cut -c1-6)" = 0.3333 &&
	test "$(share big allocated)" = 3 && test "$(share lab allocated)" = 3 && test "$(share big demand)" = 7 &&
	test "$(share big fair_share)" = 4 && test "$(share small limit)" = 1
'

test_expect_success 'what was used is known for each user' '
	wait_for 60 eval "gpuq shares --json big | json raw_usage | grep -v ^0" &&
	test "$(gpuq shares --json --me big | tail -n 1 | json fair_share_factor)" = 1.0
'

test_expect_success 'a queue that is not there is refused' '
	exits 1 gpuq shares nowhere && says err "no queue is named nowhere"
'

test_expect_success 'terms add up to the priority, and the line is numbered' '
	gpuq prio --json >prio.json && /usr/bin/python3 - <<-END &&
	import json
	rows = [json.loads(line) for line in open("prio.json")]
	assert [(r["id"], r["place"], r["waiting"]) for r in rows] == [($first, 1, 2), ($second, 2, 2)], rows
	for r in rows:
	    sum = r["boost"] + r["age"] + r["fairshare"] + r["size"] + r["qos"] + r["stretch"] - r["nice"]
	    assert sum == r["priority"], r
	assert rows[1]["nice"] == 5
	END
	test "$(gpuq prio --json "$second" | json id)" = "$second" && gpuq prio -w --json | json fairshare
'

test_expect_success 'nobody waits any more; what was used stays, in an exported scenario, too' '
	gpuq cancel "$first" "$second" "$run" && job_becomes "$run" CANCELLED && test -z "$(gpuq prio -h)" &&
	gpuq export --scenario --json >now.json && used=$(json cases.0.users.0.used <now.json) &&
	counts=$(gpuq usage --json -u "$(id -un)" big | json decayed_gpu_seconds) &&
	awk "BEGIN { exit !($used > 0.5 && $used > $counts * 0.99 && $used < $counts * 1.01) }" &&
	"$test_build/gpuqd/gpuq-sim" shares now.json >out && says out "$(id -un)" && stop_gpuqd
'

test_done
