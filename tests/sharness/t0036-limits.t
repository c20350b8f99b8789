#!/bin/sh
test_description='limits of queues, qos, users and groups, and budgets of users: the one that decides is named, with have and need'
. "$(dirname "$0")/lib.sh"

me=$(id -un)
# write_site USER GROUP: the limits of the user and of its group, after those of everything else
write_site() {
	cat >site.yaml <<-END
	version: 1
	qos:
	- {name: two, max_running: 2}
	- {name: mine, max_running: {user: 1}, max_gpus: {job: 2}}
	- {name: narrow, max_gpus: 1}
	- {name: short, max_time: 10m}
	- {name: few, max_submitted: {user: 1}}
	licenses:
	- {name: matlab, count: 1}
	queues:
	- {name: a, qos: [normal, two, mine, narrow, short, few]}
	- {name: gpus, limit: 2, max_gpus: {user: 1, job: 2}, max_time: 1h}
	- {name: jobs, max_running: {user: 1}, max_submitted: {user: 3, queue: 4}}
	- {name: one, max_running: 1}
	- {name: purse, budget: {gpu_minutes: 1000, user_gpu_minutes: 10, mode: hard}}
	groups:
	- {name: ml$2}
	users:
	- {name: $me, groups: [ml]$1}
	END
}

# refused WORDS [option...]: exit 1, these words on stderr
refused() {
	refused_words=$1
	shift
	printf "#!/bin/sh\nexit 0\n" >job.sh && exits 1 submit "$@" job.sh && says err "$refused_words"
}

# waits REASON OBJECT HAVE NEED [option...]: a job of these options waits for that, and is cancelled
waits() {
	waits_reason=$1 waits_object=$2 waits_have=$3 waits_need=$4
	shift 4
	waits_id=$(sh_job "exit 0" "$@") && wait_for 20 job_is "$waits_id" reason "$waits_reason" &&
		job_is "$waits_id" reasons.0.object "$waits_object" && job_is "$waits_id" reasons.0.have "$waits_have" &&
		job_is "$waits_id" reasons.0.need "$waits_need" && exits 0 gpuq cancel "$waits_id"
}

# runs [option...]: a job that runs until none() ends it
runs() {
	runs_id=$(sh_job "exec sleep 600" "$@") && job_becomes "$runs_id" RUNNING
}
none() {
	exits 0 gpuq cancel --me && wait_for 30 eval "test \$(in_queue) = 0"
}

test_expect_success 'what could never start, or is too much, is refused and told by whom' '
	write_site "" "" && start_gpuqd --site "$PWD/site.yaml" &&
	refused "asks for 3 GPUs, queue gpus allows 2 per job" -p gpus -g 3 &&
	refused "asks for 2 GPUs, queue gpus allows 1 per user" -p gpus -g 2 &&
	refused "2h is longer than queue gpus .* allow, which is 1h" -p gpus -t 2h &&
	refused "11m is longer than queue a and qos short allow, which is 10m" -p a --qos short -t 11 &&
	refused "asks for 3 GPUs, qos mine allows 2 per job" -p a --qos mine -g 3 &&
	refused "asks for 2 GPUs, qos narrow allows 1" -p a --qos narrow -g 2 &&
	refused "no license is named matlib; did you mean matlab" -p a -L matlib &&
	held=$(sh_job "exit 0" -p a --qos few --hold) && refused "qos few takes 1 jobs per user: there are 1, and 1 more" -p a --qos few &&
	refused "queue jobs takes 3 jobs per user: there are 0, and 4 more were to come" -p jobs --array=0-3 && none
'

test_expect_success 'what runs at once: queues, users in queues, qos, users of a qos, licenses' '
	runs -p jobs -g 0 && waits LimitUser jobs 0 1 -p jobs -g 0 && none &&
	runs -p one -g 0 && waits LimitQueue one 0 1 -p one -g 0 && none &&
	runs -p gpus -g 1 && waits LimitUser gpus 0 1 -p gpus -g 1 && none &&
	runs -p a --qos two -g 0 && runs -p a --qos two -g 0 && waits LimitQueue qos/two 0 1 -p a --qos two -g 0 && none &&
	runs -p a --qos mine -g 0 && waits LimitUser "qos/mine/$me" 0 1 -p a --qos mine -g 0 && none &&
	runs -p a --qos narrow -g 1 && waits LimitQueue qos/narrow 0 1 -p a --qos narrow -g 1 && none &&
	runs -p a -g 0 -L matlab && waits License matlab 0 1 -p a -g 0 -L matlab && none
'

test_expect_success 'each user has a purse of its own' '
	waits Budget "purse/$me" 10 11 -p purse -g 1 -t 11 && runs -p purse -g 1 -t 6:30 &&
	waits BudgetCommitted "purse/$me" 3 5 -p purse -g 1 -t 5 &&
	gpuq usage purse -u "$me" --json >purse && test "$(json budget_gpu_minutes <purse)" = 10 && none
'

test_expect_success 'of a user and of a group, in all queues' '
	stop_gpuqd && rm -rf state && write_site ", max_running: 2, max_gpus: 2, max_submitted: 4" ", max_running: 1" &&
	start_gpuqd --site "$PWD/site.yaml" && refused "asks for 3 GPUs, user $me allows 2" -p a -g 3 &&
	runs -p a -g 1 && waits LimitUser group/ml 0 1 -p one -g 1 && none &&
	refused "user $me takes 4 jobs: there are 0, and 5 more" -p a --array=0-4 &&
	stop_gpuqd && rm -rf state && write_site ", max_gpus: 2" ", max_submitted: 2" && start_gpuqd --site "$PWD/site.yaml" &&
	refused "group ml takes 2 jobs: there are 0, and 3 more" -p a --array=0-2 &&
	runs -p a -g 1 && waits LimitUser "user/$me" 1 2 -p one -g 2 && none
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
