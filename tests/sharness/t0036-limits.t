#!/bin/sh
test_description='limits of queues, qos, users and groups, and budgets of users: the one that decides is named, with have and need'
. "$(dirname "$0")/lib.sh"

me=$(id -un)
# write_site USER GROUP: the limits of the user and of its group, after those of everything else
write_site() {
	cat >site.yaml <<-END
	version: 1
	qos:
	- {name: solo, max_running: 1}
	- {name: mine, max_running: {user: 1}, max_gpus: {job: 2}}
	- {name: narrow, max_gpus: 1}
	- {name: own, max_gpus: {user: 2}}
	- {name: short, max_time: 10m}
	- {name: few, max_submitted: {user: 1}}
	- {name: fewer, max_submitted: 2}
	licenses:
	- {name: matlab, count: 1}
	queues:
	- {name: a, qos: [normal, solo, mine, narrow, own, short, few, fewer]}
	- {name: gpus, limit: 2, max_gpus: {user: 1, job: 2}, max_time: 1h}
	- {name: three, max_gpus: 3}
	- {name: four, limit: {default: 3, other: 4}}
	- {name: jobs, max_running: {user: 1}, max_submitted: {user: 3, queue: 4}}
	- {name: one, max_running: 1}
	- {name: dept, max_time: 30m, default_time: 20m}
	- {name: team, parent: dept}
	- {name: long, parent: dept, default_time: 2h}
	- {name: purse, budget: {gpu_minutes: 1000, user_gpu_minutes: 10, mode: hard}}
	flavors:
	- {name: other, match: {product: "no such*"}}
	groups:
	- {name: ml$2}
	users:
	- {name: $me, groups: [ml]$1}
	END
}

# met ROW...: limits that have decided
met() {
	for met_row; do echo "$met_row" >>met; done
}

# refused WORDS [option...]: exit 1, these words on stderr
refused() {
	refused_words=$1
	shift
	printf "#!/bin/sh\nexit 0\n" >job.sh && exits 1 submit "$@" job.sh && says err "$refused_words"
}

# waits REASON OBJECT HAVE NEED [option...]: a job of these options waits for that, would start without that, and
# is cancelled
waits() {
	waits_reason=$1 waits_object=$2 waits_have=$3 waits_need=$4
	shift 4
	waits_id=$(sh_job "exit 0" "$@") && waits_for "$waits_id" && exits 0 gpuq cancel "$waits_id"
}
waits_for() {
	wait_for 60 job_is "$1" reason "$waits_reason" &&
		job_is "$1" reasons.0.object "$waits_object" && job_is "$1" reasons.0.have "$waits_have" &&
		job_is "$1" reasons.0.need "$waits_need" && gpuq why "$1" >why.out && says why.out "without $waits_reason"
}

# runs [option...]: a job that runs until none() ends it
runs() {
	runs_id=$(sh_job "exec sleep 600" "$@") && job_becomes "$runs_id" RUNNING
}
none() {
	exits 0 gpuq cancel --me && wait_for 60 eval "test \$(in_queue) = 0"
}

test_expect_success 'what could never start, or is too much, is refused and told by whom' '
	write_site "" "" && start_gpuqd --site "$PWD/site.yaml" &&
	refused "requests 3 GPUs, queue gpus allows 2 per job" -p gpus -g 3 && met queue.max_gpus.job &&
	refused "requests 2 GPUs, queue gpus allows 1 per user" -p gpus -g 2 && met queue.max_gpus.user &&
	refused "requests 4 GPUs, queue three allows 3" -p three -g 4 && met queue.max_gpus.queue &&
	refused "requests 5 GPUs, queue four allows 4" -p four -g 5 && refused "requests 4 GPUs, queue four allows 3" -p four --gpus default:4 &&
	met queue.limit && refused "2h is longer than queue gpus .* allow, which is 1h" -p gpus -t 2h && met queue.max_time &&
	refused "31m is longer than queue team .* allow, which is 30m" -p team -t 31 &&
	refused "11m is longer than queue a and qos short allow, which is 10m" -p a --qos short -t 11 && met qos.max_time &&
	refused "requests 3 GPUs, qos mine allows 2 per job" -p a --qos mine -g 3 && met qos.max_gpus.job &&
	refused "requests 2 GPUs, qos narrow allows 1" -p a --qos narrow -g 2 && met qos.max_gpus.queue &&
	refused "requests 3 GPUs, qos own allows 2 per user" -p a --qos own -g 3 && met qos.max_gpus.user &&
	refused "no license is named matlib; did you mean matlab" -p a -L matlib &&
	held=$(sh_job "exit 0" -p a --qos few --hold) && refused "qos few allows 1 job per user: it has 1, and 1 more" -p a --qos few &&
	met qos.max_submitted.user && refused "qos fewer allows 2 jobs: it has 0, and 3 more" -p a --qos fewer --array=0-2 && met qos.max_submitted.queue &&
	refused "queue jobs allows 3 jobs per user: it has 0, and 4 more would exceed that" -p jobs --array=0-3 && met queue.max_submitted.user &&
	none
'

test_expect_success 'who names no time gets that of the queue, as far as what is above allows it' '
	test "$(job "$(sh_job "exit 0" -p team --hold)" time_limit_s)" = 1200 && test "$(job "$(sh_job "exit 0" -p long --hold)" time_limit_s)" = 1800 &&
	test "$(job "$(sh_job "exit 0" -p a --qos short --hold)" time_limit_s)" = 600 && test "$(job "$(sh_job "exit 0" -p a --hold)" time_limit_s)" = null &&
	met queue.default_time && none
'

test_expect_success 'what runs at once: queues, users in queues, qos, users of a qos, licenses' '
	runs -p jobs -g 0 && waits LimitUser jobs 0 1 -p jobs -g 0 && met queue.max_running.user && none &&
	runs -p one -g 0 && waits LimitQueue one 0 1 -p one -g 0 && met queue.max_running.queue && none &&
	runs -p gpus -g 1 && waits LimitUser gpus 0 1 -p gpus -g 1 && none &&
	runs -p three -g 2 && waits LimitQueue three 1 2 -p three -g 2 && runs -p three -g 1 && none &&
	runs -p a --qos solo -g 0 && waits LimitQueue qos/solo 0 1 -p a --qos solo -g 0 && met qos.max_running.queue && none &&
	runs -p a --qos mine -g 0 && waits LimitUser "qos/mine/$me" 0 1 -p a --qos mine -g 0 && met qos.max_running.user && none &&
	runs -p a --qos narrow -g 1 && waits LimitQueue qos/narrow 0 1 -p a --qos narrow -g 1 && none &&
	runs -p a --qos own -g 1 && waits LimitUser "qos/own/$me" 1 2 -p a --qos own -g 2 && none &&
	runs -p a -g 0 -L matlab && waits License matlab 0 1 -p a -g 0 -L matlab && met license.count && none
'

test_expect_success 'one that was taken while more was allowed waits' '
	waits_reason=LimitJob waits_have=1 waits_need=2 &&
	j=$(sh_job "exit 0" -p a --qos mine -g 2 --hold) && k=$(sh_job "exit 0" -p gpus -g 1 --hold) && l=$(sh_job "exit 0" -p three -g 2 --hold) &&
	printf "version: 1\nqos:\n- {name: mine, max_gpus: {job: 1}}\nqueues:\n- {name: three, max_gpus: {job: 1}}\n" | exits 0 gpuq apply -f - &&
	gpuq release "$j" "$l" && waits_object=qos/mine && waits_for "$j" && waits_object=three && waits_for "$l" && none
'

test_expect_success 'a queue counts what everybody has submitted' '
	for user in 1 2 3; do sh_job "exit 0" -p jobs --hold >id || return 1; done &&
	refused "queue jobs allows 3 jobs per user: it has 3, and 1 more" -p jobs && gpuq queues set jobs max_submitted="{queue: 3}" &&
	refused "queue jobs allows 3 jobs: it has 3, and 1 more" -p jobs && met queue.max_submitted.queue && none
'

test_expect_success 'elastic jobs grow inside the limits of their user' '
	gpuq queues set three max_gpus="{user: 3}" && echo "{queue: three, command: [sleep, \"600\"], gpus: 1, pods: {min: 1, max: 2}}" >elastic.yaml &&
	a=$(submit elastic.yaml) && b=$(submit elastic.yaml) && job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	wait_for 60 eval "test \$(gpuq queues three --json | json allocated) = 3" && sleep 0.5 && test "$(gpuq queues three --json | json allocated)" = 3 && none
'

test_expect_success 'each user has a purse of its own' '
	waits Budget "purse/$me" 10 11 -p purse -g 1 -t 11 && runs -p purse -g 1 -t 6:30 &&
	waits BudgetCommitted "purse/$me" 3 5 -p purse -g 1 -t 5 &&
	gpuq usage purse -u "$me" --json >purse && test "$(json budget_gpu_minutes <purse)" = 10 && none
'

test_expect_success 'of a user and of a group, in all queues' '
	stop_gpuqd && rm -rf state && write_site ", max_running: 2, max_gpus: 2, max_submitted: 4" ", max_running: 1" &&
	start_gpuqd --site "$PWD/site.yaml" && refused "requests 3 GPUs, user $me allows 2" -p a -g 3 &&
	runs -p a -g 1 && waits LimitUser group/ml 0 1 -p one -g 1 && met group.max_running && none &&
	refused "user $me allows 4 jobs: it has 0, and 5 more" -p a --array=0-4 && met user.max_submitted &&
	stop_gpuqd && rm -rf state && write_site ", max_gpus: 2" ", max_submitted: 2" && start_gpuqd --site "$PWD/site.yaml" &&
	refused "group ml allows 2 jobs: it has 0, and 3 more" -p a --array=0-2 && met group.max_submitted &&
	runs -p a -g 1 && waits LimitUser "user/$me" 1 2 -p one -g 2 && met user.max_gpus && none &&
	stop_gpuqd && rm -rf state && write_site ", max_running: 1" ", max_gpus: 2" && start_gpuqd --site "$PWD/site.yaml" &&
	refused "requests 3 GPUs, group ml allows 2" -p a -g 3 && runs -p a -g 1 && waits LimitUser "user/$me" 0 1 -p one -g 1 && met user.max_running &&
	none && printf "version: 1\nusers:\n- {name: %s, max_running: null}\n" "$me" | exits 0 gpuq apply -f - &&
	runs -p a -g 1 && waits LimitUser group/ml 1 2 -p one -g 2 && met group.max_gpus && none
'

test_expect_success 'somebody in more groups than can be counted is refused' '
	{ echo "version: 1" && echo "groups:" && for i in 1 2 3 4 5 6 7 8 9; do echo "- {name: g$i, max_gpus: $i}" || return 1; done &&
		echo "users: [{name: $me, groups: [g1, g2, g3, g4, g5, g6, g7, g8, g9]}]"; } >many.yaml && exits 1 gpuq apply -f many.yaml &&
	says err "many.yaml:12:.*at most 8 groups" && sed -i "s/, g9\]/]/" many.yaml && exits 0 gpuq apply -f many.yaml &&
	runs -p a -g 1 && waits LimitUser group/g1 0 1 -p a -g 1 && none
'

# The limits of the site, from its tables: whoever adds one shows above, or in the tests that are named here, that it
# decides.
test_expect_success 'no limit is left out' '
	grep -q "idle: " "$test_source/tests/sharness/t0039-idle.t" && met qos.idle queue.idle &&
	grep -q "max_spot_preemptions: 1" "$test_source/tests/scenario/ac_dws.yaml" && met queue.max_spot_preemptions &&
	grep -q "start_timeout" "$test_source/tests/sharness/t0512-fake-start.t" && met queue.start_timeout &&
	/usr/bin/python3 - "$test_source/gpuqd/site/site.c" >all <<-\END &&
	import re, sys
	parts = {"site_caps_custom": ("user", "queue", "job"), "site_caps_count_custom": ("user", "queue")}
	text = open(sys.argv[1]).read()
	rows = [("license", "count", "")]
	for of, key, rest in re.findall(r"F\(site_(qos|queue), \"(max_\w+|limit|default_time|start_timeout|idle)\",([^)]*)", text):
	    rows.append((of, key, rest))
	for key in re.findall(r"F\(type, \"(max_\w+)\"", text):
	    rows += [("user", key, ""), ("group", key, "")]
	for of, key, rest in rows:
	    kind = re.search(r"custom = &(\w+)", rest)
	    for part in parts.get(kind and kind.group(1), ("",)):
	        print(of + "." + key + (part and "." + part))
	END
	sort -u all >want && test "$(wc -l <want)" -gt 20 && sort -u met >got && test_cmp want got
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
