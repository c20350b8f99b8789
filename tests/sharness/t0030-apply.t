#!/bin/sh
test_description='the site is changed while jobs run: apply, prune, evictions, export, verbs, who changed what'
. "$(dirname "$0")/lib.sh"

# rpc METHOD JSON: items and reply of one call, a JSON value a line
rpc() {
	/usr/bin/python3 "$test_source/tests/sharness/rpc.py" "${gpuqd_socket}" "$@"
}

# has FILE TEXT: it has a line with this in it
has() {
	grep -qF -e "$2" "$1" && return 0
	echo "$1 does not say $2:"
	cat "$1"
	return 1
}

# change OBJECT: what was said of it last: action, old, new
change() {
	rpc audit.list "{\"objects\": [\"$1\"], \"newest\": true, \"limit\": 1}" | head -n 1
}

# evaluated ID: the scheduler has looked at it
evaluated() {
	test "$(job "$1" reason)" != NotEvaluated
}

test_expect_success 'start with a site' '
	cat >site.yaml <<-END &&
	version: 1
	flavors:
	- {name: big, match: {memory: 1Gi}}
	- {name: small, match: {product: "*"}}
	queues:
	- {name: dept, quota: 4}
	- {name: red, parent: dept, quota: 2, managers: [nobody]}
	- {name: blue, parent: dept, quota: 2}
	qos:
	- {name: urgent, priority: 100}
	licenses:
	- {name: tool, count: 3}
	END
	start_gpuqd --site site.yaml --gpus 4 && test "$(rpc site.get "{}" | json generation)" = 1
'

test_expect_success 'what is exported changes nothing when it is applied' '
	gpuq export >out.yaml && exits 0 gpuq apply -f out.yaml && says out "Nothing changes" &&
	exits 0 gpuq apply --prune -f out.yaml && says out "Nothing changes" &&
	gpuq export --json >out.json && exits 0 gpuq apply -f out.json && says out "Nothing changes"
'

test_expect_success 'wrong files are refused with their places, and nothing changes' '
	printf "version: 1\nqueues:\n- {name: red, quoat: 4}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml &&
	says err "bad.yaml:3:[0-9]+: .*quoat.*quota" &&
	printf "version: 1\nqueues:\n- {name: green, quota: {bigg: 1}}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml &&
	says err "bad.yaml:3:[0-9]+: .*no flavor is named bigg .did you mean big" &&
	printf "queues: []\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "version" &&
	printf "version: 1\nqueues:\n- {name: red}\n- {name: red}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:4" &&
	printf "version: 1\nqueues: [" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:1: not valid YAML" &&
	exits 1 gpuq apply -f bad.yaml --remove pool/x && exits 1 gpuq apply --remove queue/rde && says err "did you mean red" &&
	test "$(rpc site.get "{}" | json generation)" = 1
'

test_expect_success 'what is wrong is told by its name, wherever it stands in the site' '
	printf "version: 1\nqueues:\n- {name: new, quota: -1}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:22: queues.new..quota: expected" &&
	printf "version: 1\nqueues:\n- {name: red, qos: [normal, urgnt]}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml &&
	says err "bad.yaml:3:29: queues.red..qos: no qos is named urgnt .did you mean urgent" &&
	exits 1 gpuq queues set red quota=x && says err "queues.red..quota" &&
	printf "version: 1\nqueues:\n- {name: \"a\377\"}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:12: not a text" &&
	printf "version: 2\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:1:10: version: expected 1, found 2" &&
	printf "version: 1\nqueues:\n- {name: red, quota: 1e9}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:22" &&
	printf "version: 1\nqueues:\n- {name: red, max_running: {job: 1}}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:34.*user or queue" &&
	printf "version: 1\nqueues:\n- {name: red, namespace: Vision}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:26: queues.red..namespace: expected a namespace" &&
	exits 1 gpuq queues set red users="[]" && says err "or null: then those of the parent queue" &&
	exits 1 gpuq queues set red service_account=a..b && exits 1 gpuq queues set red image_pull_secrets="[ok-1.x, -no]" && says err "queues.red..image_pull_secrets" &&
	printf "version: 1\nqueues:\n- {name: red, pod_policy: open}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:27: queues.red..pod_policy: expected baseline" &&
	printf "version: 1\nqueues:\n- {quota: 1}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:3: queues\[\].name: missing" &&
	exits 1 gpuq queues set red max_time=0 && says err "a time above 0" && exits 2 gpuq queues set red quota= && says err "expected a value" &&
	exits 2 gpuq queues set red quota=1 quota=2 && says err "quota: it is given twice" && exits 2 gpuq queues set red name=new && says err "cannot be renamed" &&
	exits 1 gpuq reserve gone --start 2020-01-01T00:00Z -t 1h -g 1 && says err "gone: the end is in the past" &&
	exits 1 gpuq apply --remove queue/dept && says err "queue dept has queues below it.*red is one" &&
	exits 1 gpuq reserve none -t 0 -g 1 && exits 1 gpuq reserve much -t 1h -g 9 && says err "no more than 4 such devices" &&
	printf "version: 1\nreservations:\n- {name: r, start: now, duration: 1h}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:3: .*holds nothing" &&
	test "$(rpc site.get "{}" | json generation)" = 1
'

test_expect_success 'a queue that says no quota has the sum of those below it' '
	printf "version: 1\nqueues:\n- {name: dept, quota: null}\n" | exits 0 gpuq apply -f - && test "$(gpuq queues dept --json | json quota)" = 4 &&
	printf "version: 1\nqueues:\n- {name: blue, quota: {small: 1}}\n" | exits 0 gpuq apply -f - &&
	test "$(gpuq queues dept --json | json quota.small)" = 3 && test "$(gpuq queues dept --json | json quota.big)" = 2 &&
	printf "version: 1\nqueues:\n- {name: dept, quota: 4}\n- {name: blue, quota: 2}\n" | exits 0 gpuq apply -f -
'

test_expect_success 'what can never be had is warned of, and that where quotas change alone' '
	exits 0 gpuq queues set red quota=2 limit=1 --dry-run && says err "red has a quota of 2 small, beyond its limit of 1" &&
	exits 0 gpuq queues set red lend=3 --dry-run && says err "red has a quota of 2 small and lends 3" &&
	exits 0 gpuq queues set red quota=9 && exits 0 gpuq reserve later --start now+9d -t 1h -g 1 && ! grep quotas err &&
	exits 0 gpuq reserve --delete later && exits 0 gpuq queues set red quota=2 &&
	printf "#!/bin/sh\n" >lic.sh && exits 0 gpuq submit -p red -L tool:4 --dry-run lic.sh && says err "requests 4 of license tool, there are 3"
'

test_expect_success 'many who change the site at once all get what they asked for' '
	pids= && before=$(rpc site.get "{}" | json generation) &&
	for i in 1 2 3 4 5 6; do
		printf "version: 1\nqueues:\n- {name: at%s, parent: dept, quota: 0}\n" $i >at$i.yaml &&
		{ gpuq apply -f at$i.yaml >at$i.out 2>&1 3>&- 4>&- 5>&- & } && pids="$pids $!" &&
		{ gpuq queues set red weight=$((i + 2)) >set$i.out 2>&1 3>&- 4>&- 5>&- & } && pids="$pids $!" || return 1
	done && for pid in $pids; do wait $pid || { cat at?.out set?.out; return 1; }; done &&
	test "$(gpuq queues -h -o name | grep -c "^at")" = 6 && test "$(rpc site.get "{}" | json generation)" = $((before + 12)) &&
	exits 0 gpuq apply --remove queue/at1,queue/at2,queue/at3,queue/at4,queue/at5,queue/at6 && gpuq queues set red weight=null
'

test_expect_success 'keys that a file does not mention stay; null takes one away' '
	printf "version: 1\nqueues:\n- {name: red, weight: 3, max_gpus: {user: 4}}\n" >a.yaml && exits 0 gpuq apply -f a.yaml &&
	says out "queue/red changed" && has out "+ weight: 3" && gpuq export --json | json queues.2 >q &&
	has q "\"quota\": 2" && has q "\"weight\": 3" &&
	printf "version: 1\nqueues:\n- {name: red, max_gpus: null}\n" | exits 0 gpuq apply -f - && has out "- max_gpus" &&
	gpuq export --json | json queues.2 >q && has q "\"weight\": 3" && test_must_fail grep -q max_gpus q
'

test_expect_success 'what changed is kept: who, when, from what to what' '
	change queue/red >got && json old.max_gpus.user <got >old && test "$(cat old)" = 4 &&
	test "$(json who <got)" = "$(id -un)" && test "$(json action <got)" = site.changed && test "$(json time <got)" -gt 1500000000000000
'

test_expect_success 'and people can read it' '
	gpuq events --audit >got && says got "queue/red" && gpuq events --audit --json >got && head -n 1 got | json time >time && says time "^20[0-9-]+T.*Z$"
'

test_expect_success 'a dry run changes nothing' '
	gpuq export >before && printf "version: 1\nqueues:\n- {name: red, weight: 9}\n- {name: green, parent: dept}\n" >a.yaml &&
	exits 0 gpuq apply -f a.yaml --dry-run && has out "+ weight: 9" && says out "queue/green added" && says out "evict no jobs" &&
	gpuq export >after && test_cmp before after && exits 1 gpuq apply -f a.yaml --generation 1 && says err "generation" &&
	exits 0 gpuq apply -f a.yaml --generation "$(rpc site.get "{}" | json generation)"
'

test_expect_success 'who would be evicted is told, and asked for' '
	r1=$(sh_job "sleep 300" -p red -g 1) && r2=$(sh_job "sleep 300" -p red -g 1) && b1=$(sh_job "sleep 300" -p blue -g 2) &&
	job_becomes "$r1" RUNNING && job_becomes "$r2" RUNNING && job_becomes "$b1" RUNNING &&
	b2=$(sh_job "sleep 300" -p blue -g 1) && wait_for 60 evaluated "$b2" &&
	printf "version: 1\nqueues:\n- {name: red, quota: 1}\n- {name: blue, quota: 3}\n" >a.yaml &&
	exits 0 gpuq apply -f a.yaml --dry-run && says out "Would evict 1 job" && says out "^ +($r1|$r2) .* red +1 .*waits +$b2 .blue." &&
	exits 0 gpuq apply -f a.yaml --dry-run --json && test "$(json evictions.0.by <out)" = "$b2" &&
	exits 1 gpuq apply -f a.yaml && says err "yes-evict 1" && job_is "$r1" state RUNNING && job_is "$r2" state RUNNING &&
	exits 1 gpuq apply -f a.yaml --yes-evict 0 && exits 0 gpuq apply -f a.yaml --yes-evict 1 --json &&
	victim=$(json evictions.0.id <out) && job_becomes "$b2" RUNNING && job_is "$victim" state PENDING &&
	if test "$victim" = "$r1"; then r1=$r2 && r2=$victim; fi && job_is "$r1" state RUNNING
'

test_expect_success 'quotas beyond what there is are told' '
	exits 0 gpuq queues set blue quota=30 --dry-run && says err "warning: .*quotas below dept" && gpuq cancel "$r2"
'

test_expect_success 'what jobs depend on cannot go' '
	exits 1 gpuq apply --remove queue/blue && says err "queue blue has jobs" &&
	flavor=$(job "$b1" flavor) && exits 1 gpuq apply --remove "flavor/$flavor" && says err "flavor $flavor cannot be removed" &&
	u=$(sh_job "sleep 300" -p blue --qos=urgent --licenses=tool:1 -g 1) &&
	exits 1 gpuq apply --remove qos/urgent && says err "job $u depends" &&
	exits 1 gpuq apply --remove license/tool && says err "license tool" &&
	printf "version: 1\nqueues:\n- {name: dept}\n- {name: blue, parent: dept}\n" >a.yaml &&
	exits 1 gpuq apply --prune -f a.yaml && says err "red has jobs|cannot be removed" &&
	printf "version: 1\nqueues:\n- {name: sub, parent: blue}\n" >a.yaml && exits 1 gpuq apply -f a.yaml && says err "blue has jobs" &&
	gpuq cancel "$u" && wait_for 60 exits 0 gpuq apply --remove qos/urgent,license/tool
'

test_expect_success 'running jobs go on through changes of flavors, pools, users, parents' '
	cat >a.yaml <<-END &&
	version: 1
	flavors: [{name: gold, match: {product: "*"}, rate: 2}]
	pools: [{name: all, flavor: gold}]
	users: [{name: ann, groups: [ml], default_queue: blue}]
	queues: [{name: top}, {name: dept, parent: top}]
	END
	exits 0 gpuq apply -f a.yaml && test "$(gpuq nodes --json | json pool)" = all && test "$(gpuq nodes --json | json flavor)" = gold &&
	job_is "$b1" state RUNNING && job_is "$r1" state RUNNING && test "$(gpuq queues --json blue | json allocated)" = 3 &&
	gpuq cancel "$r1" && job_becomes "$r1" CANCELLED && g=$(sh_job "sleep 300" -p red -g 1) && job_becomes "$g" RUNNING && job_is "$g" flavor gold &&
	exits 1 gpuq apply --remove pool/all,flavor/gold && says err "flavor gold" && exits 0 gpuq apply --remove pool/all && job_is "$g" state RUNNING
'

test_expect_success 'queues are stopped, started, closed and opened' '
	exits 0 gpuq queues stop red blue && says out "2 changes" && s=$(sh_job "exit 0" -p red) &&
	wait_for 60 job_is "$s" reason QueueStopped && exits 0 gpuq queues start red blue && exits 0 gpuq wait "$s" &&
	exits 0 gpuq queues close red && test_must_fail sh_job "exit 0" -p red && exits 0 gpuq queues open red &&
	s=$(sh_job "exit 0" -p red) && exits 0 gpuq wait "$s" && exits 1 gpuq queues stop rde && says err "did you mean red" && exits 0 gpuq queues stop red &&
	exits 0 gpuq queues stop red && says out "Nothing changes" && exits 0 gpuq queues start red &&
	exits 0 gpuq queues set red quota=9 && says err "warning: .*quotas" && exits 0 gpuq queues stop red && test_must_be_empty err &&
	exits 0 gpuq queues start red && exits 0 gpuq queues set red quota=1
'

test_expect_success 'a kind of device that there is none of is told at once' '
	printf "#!/bin/sh\n#GPUQ --gpus=two\nsleep 1\n" >two.sh && exits 0 gpuq submit -p red --dry-run two.sh && says err "no node has devices of flavor two" &&
	says err "there are: small" && sed -i s/two/smalls:2/ two.sh && exits 0 gpuq submit -p red --dry-run two.sh && says err "did you mean small" &&
	sed -i s/smalls:2/2/ two.sh && exits 0 gpuq submit -p red --dry-run two.sh && test_must_be_empty err
'

test_expect_success 'nodes are drained and used again; it is kept who did so' '
	node=$(gpuq nodes --json | json name) && exits 0 gpuq drain "$node" --reason "bad fan" && says out "on which 3 jobs keep running" &&
	test "$(gpuq nodes --json | json state)" = drain && s=$(sh_job "exit 0" -p red) && exits 0 gpuq resume "*" && exits 0 gpuq wait "$s" &&
	gpuq drain "$node" --reason "bad fan" && exits 0 gpuq drain "$node" && says out "Drained 0 nodes" && test "$(gpuq nodes --json | json note)" = "bad fan" &&
	gpuq resume "$node" && exits 1 gpuq drain nosuch && rpc audit.list "{\"objects\": [\"node/*\"]}" >got && test "$(head -n 1 got | json new.why)" = "bad fan" &&
	test "$(sed -n 2p got | json action)" = node.resume
'

test_expect_success 'what runs on a drained node may be told to leave, and is refunded' '
	node=$(gpuq nodes --json | json name) && d=$g &&
	exits 0 gpuq drain "$node" --requeue --dry-run && says out "Would drain 1 node, on which . jobs are requeued" && job_is "$d" state RUNNING &&
	exits 0 gpuq drain "$node" --requeue -r "new driver" --json && test "$(json requeued <out)" = "$(json jobs <out)" &&
	job_becomes "$d" PENDING && job_is "$d" evictions.0.cause drain && job_is "$d" evictions.0.by "$(id -un)" &&
	job "$d" evictions.0.why | grep "node $node is drained: new driver" && wait_for 60 eval "test \$(gpuq nodes --json | json state) = drained" &&
	gpuq resume "$node" && job_becomes "$d" RUNNING && job_becomes "$b1" RUNNING
'

test_expect_success 'reservations are made, listed and deleted' '
	exits 0 gpuq reserve later --start now+2h -t 1h -g 2 -q blue && exits 0 gpuq reserve later -t 1h -g 1 && says out "later changed" &&
	test "$(gpuq reservations -h -o name,state)" = "later planned" && node=$(gpuq nodes --json | json name) &&
	exits 1 gpuq reserve now -t 1h -w "$node" -q blue && says err "would evict 1 job" && exits 0 gpuq reserve now -t 1h -w "$node" -q blue --yes-evict 1 &&
	test "$(gpuq reservations --json now | json state)" = active && s=$(sh_job "exit 0" -p red) && wait_for 60 job_is "$s" reason Reservation &&
	exits 0 gpuq reserve --delete now later && exits 0 gpuq wait "$s" && test "$(gpuq reservations -h)" = "" && exits 1 gpuq reserve --delete now
'

test_expect_success ROOT 'a manager changes what is below his queue, and no more' '
	open_to_all && nobody() { as nobody env HOME=/ GPUQ_SERVER="$GPUQ_SERVER" gpuq "$@"; } &&
	gpuq cancel -q red && wait_for 60 exits 0 gpuq queues set red quota=1 &&
	printf "version: 1\nqueues:\n- {name: red1, parent: red, quota: 1}\n- {name: red2, parent: red}\n" >a.yaml && chmod a+r a.yaml &&
	wait_for 60 exits 0 nobody apply -f - <a.yaml && exits 0 nobody queues set red2 weight=3 && exits 0 nobody queues stop red1 &&
	exits 0 nobody queues set red users="[ann]" && exits 1 nobody queues set red quota=4 && says err "operator" &&
	exits 1 nobody queues set blue weight=2 && says err "operator or a manager" && exits 1 nobody queues set red1 pod_policy=privileged &&
	exits 1 nobody queues set red1 parent=blue && exits 1 nobody reserve x -t 1h -g 1 && exits 0 nobody apply --remove queue/red1 &&
	exits 1 nobody apply --remove queue/red && exits 1 nobody drain "*" &&
	cp "$test_source/tests/sharness/rpc.py" "$test_source/tests/unit/cli/fake.py" "$TMPDIR/bin" && chmod a+r "$TMPDIR"/bin/*.py &&
	as nobody /usr/bin/python3 "$TMPDIR/bin/rpc.py" "$gpuqd_socket" audit.list "{}" >got && has got queue/red1 && test_must_fail grep -q queue/blue got
'

test_expect_success 'an act on the job of another is kept' '
	if test "$(id -u)" = 0; then
		gpuq queues set blue users=null && s=$(printf "#!/bin/sh\nsleep 300\n" | as nobody env HOME=/ gpuq submit --parsable -p blue --chdir=/ -) &&
		exits 0 gpuq hold "$s"; gpuq cancel "$s" && change "job/$s" >got && test "$(json action <got)" = job.cancel && test "$(json owner <got)" = nobody
	fi
'

test_expect_success 'all of it outlives a crash; a change is there as a whole or not at all' '
	gpuq export >before && n=$(rpc audit.list "{}" | wc -l) && kill_gpuqd && start_gpuqd --gpus 4 && gpuq export >after && test_cmp before after &&
	test "$(rpc audit.list "{}" | wc -l)" = "$n"
'

# crash FAILPOINT: kill the daemon in the middle of an apply of eight queues; prints how many of them,
# of their notes and of the generations are there afterwards
crash() {
	generation=$(rpc site.get "{}" | json generation) && kill_gpuqd &&
	echo "version: 1" >a.yaml && echo "queues:" >>a.yaml &&
	for i in 1 2 3 4 5 6 7 8; do echo "- {name: c$generation-$i}"; done >>a.yaml &&
	GPUQ_FAILPOINT=$1 && export GPUQ_FAILPOINT && start_gpuqd --gpus 4
	unset GPUQ_FAILPOINT
	gpuq apply -f a.yaml >apply.out 2>&1 3>&- 4>&- 5>&- &
	apply_pid=$!
	sleep 0.6
	kill_gpuqd
	wait $apply_pid
	start_gpuqd --gpus 4 >&2 || return 1
	echo "$(gpuq queues -h -o name | grep -c "^c$generation-")" \
		"$(rpc audit.list "{\"objects\": [\"queue/c$generation-*\"]}" | wc -l)" \
		"$(($(rpc site.get "{}" | json generation) - generation))"
}

if grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h"; then
	test_set_prereq FAILPOINTS
fi

test_expect_success 'how far claims of a queue go is said in its file, exported, and goes into scenarios' '
	cat >far.yaml <<-END &&
	version: 1
	queues:
	- {name: far, shared_quota: {big: 1, small: 1}}
	- {name: near, parent: far, quota: 2, fence: true, own_preempt: strict, borrow_preempt_max_priority: 10, reclaimable: false}
	END
	exits 0 gpuq apply -f far.yaml && says err "queue/near: reclaimable is false" &&
	test "$(gpuq queues far --json | json quota.big)" = 3 && gpuq export >far.out && has far.out "shared_quota" &&
	for line in "borrow_preempt_max_priority: 10" "fence: true" "own_preempt: strict" "reclaimable: false"; do
		has far.out "$line" || return 1
	done && gpuq export --scenario >far.scenario && has far.scenario "borrow_preempt_max_priority: 10" &&
	has far.scenario "fence: true" && gpuq-sim run far.scenario >sim.out && says sim.out "queue +far +holds 0 .share 0, quota 10" &&
	printf "version: 1\nqueues:\n- {name: near, own_preempt: hard}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml &&
	says err "bad.yaml:3:[0-9]+: .*own_preempt.*strict" &&
	printf "version: 1\nqueues:\n- {name: near, quota: 2, shared_quota: 1}\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml &&
	says err "bad.yaml:3:[0-9]+: .*quota of its own" && exits 0 gpuq apply --remove queue/near,queue/far
'

test_expect_success FAILPOINTS 'a daemon killed in the middle of an apply has all of it or nothing' '
	crash "site.applied=kill" >got && echo "0 0 0" >want && test_cmp want got &&
	for point in "store.commit:*=delay:400" "store.committed:*=delay:400"; do
		crash "$point" >got && { grep -qx "0 0 0" got || grep -qx "8 8 1" got; } || { cat got; return 1; }
	done
'

test_done
