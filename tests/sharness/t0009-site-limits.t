#!/bin/sh
test_description='a site file: queues with quota and limit, users, limits per user and job'
. "$(dirname "$0")/lib.sh"

test_expect_success 'a wrong site file is refused with its place' '
	printf "version: 1\nqueues:\n- {name: a, qouta: 4}\n" >bad.yaml &&
	test_must_fail timeout 20 gpuqd --state "$PWD/bad" --listen "unix:$TMPDIR/b" --gpus 4 --cluster local --site bad.yaml 2>err &&
	says err "bad.yaml:3:[0-9]+: .*qouta.*quota"
'

test_expect_success 'a parent that is missing is refused' '
	printf "version: 1\nqueues:\n- {name: a, parent: nowhere}\n" >bad.yaml &&
	test_must_fail timeout 20 gpuqd --state "$PWD/bad" --listen "unix:$TMPDIR/b" --gpus 4 --cluster local --site bad.yaml 2>err &&
	says err "nowhere"
'

test_expect_success 'start with a site' '
	cat >site.yaml <<-END &&
	version: 1
	qos:
	- {name: urgent, priority: 100}
	queues:
	- {name: lab, quota: 4}
	- {name: small, parent: lab, quota: 1, limit: 1}
	- {name: big, parent: lab, quota: 3, max_gpus: {user: 3, job: 2}, qos: [normal, urgent], max_time: 1h, default_time: 10m}
	- {name: closed, parent: lab, users: [somebody-else]}
	- {name: one, parent: lab, max_running: {user: 1}}
	END
	start_gpuqd --site site.yaml
'

test_expect_success 'the queues are there' '
	gpuq queues --json | json name | sort >got && printf "big\nclosed\nlab\none\nsmall\n" >want && test_cmp want got &&
	test "$(gpuq queues --json small | json limit)" != null
'

test_expect_success 'a job beyond what its queue lets one job have is refused' '
	printf "command: [\"true\"]\nqueue: big\ngpus: 3\n" >job && exits 1 gpuq submit job && says err "big" &&
	printf "command: [\"true\"]\nqueue: small\ngpus: 2\n" >job && exits 1 gpuq submit job && says err "small"
'

test_expect_success 'a time beyond the maximum is refused, the default is taken' '
	printf "command: [\"true\"]\nqueue: big\ntime: 2h\n" >job && exits 1 gpuq submit job && says err "time|1h" &&
	id=$(sh_job "exit 0" -p big) && job_is "$id" time_limit_s 600
'

test_expect_success 'a queue given as qos is told as that' '
	printf "command: [\"true\"]\nqos: big\n" >job && exits 1 gpuq submit job && says err "qos is named big, it is a queue: -p big" &&
	printf "command: [\"true\"]\n" >job && exits 1 gpuq submit job && says err "expected a queue, one of: "
'

test_expect_success 'a queue is for its users' '
	printf "command: [\"true\"]\nqueue: closed\n" >job &&
	if test "$(id -u)" = 0; then
		open_to_all && exits 1 as nobody env HOME=/ gpuq submit - <job &&
		says err "closed"
	fi
'

test_expect_success 'jobs go into leaves only' '
	printf "command: [\"true\"]\nqueue: lab\n" >job && exits 1 gpuq submit job && says err "lab"
'

test_expect_success 'a job that names no queue is told which there are' '
	echo "command: [\"true\"]" >job && exits 1 gpuq submit job && says err "big" && says err "small"
'

test_expect_success 'a limit holds while there is room elsewhere' '
	one=$(sh_job "sleep 300" -p small -g 1) && job_becomes "$one" RUNNING &&
	two=$(sh_job "sleep 300" -p small -g 1) && wait_for 60 job_is "$two" reason LimitQueue && test "$(free_gpus)" = 3
'

test_expect_success 'so does a limit per user' '
	three=$(sh_job "sleep 300" -p big -g 2) && job_becomes "$three" RUNNING &&
	four=$(sh_job "sleep 300" -p big -g 2) && wait_for 60 job_is "$four" reason LimitUser &&
	gpuq cancel "$four" "$three" && job_becomes "$three" CANCELLED
'

test_expect_success 'and one of running jobs' '
	five=$(sh_job "sleep 300" -p one) && job_becomes "$five" RUNNING &&
	six=$(sh_job "exit 0" -p one) && wait_for 60 job_is "$six" reason LimitUser &&
	gpuq cancel "$five" && exits 0 gpuq wait "$six"
'

test_expect_success 'what ends makes room' '
	gpuq cancel "$one" && job_becomes "$two" RUNNING
'

test_expect_success 'jobs that name no flavor have those of their queue, or of one above it' '
	printf "version: 1\nflavors: [{name: gold, match: {product: \"*\"}}, {name: iron}]\nqueues: [{name: lab, flavors: [iron, gold]}, {name: one, flavors: [iron]}]\n" >f.yaml &&
	gpuq cancel -q one && exits 0 gpuq apply -f f.yaml && printf "#!/bin/sh\n" >true.sh &&
	gpuq submit --dry-run -o yaml -p big -g 1 true.sh >spec && says spec iron && says spec gold &&
	gpuq submit --dry-run -o yaml -p big true.sh >spec && ! grep iron spec &&
	gpuq submit --dry-run -o yaml -p big -g 1 --flavor gold true.sh >spec && ! grep iron spec &&
	any=$(sh_job "exit 0" -p big -g 1) && exits 0 gpuq wait "$any" && job_is "$any" flavor gold &&
	iron=$(sh_job "exit 0" -p one -g 1 -t 5) && wait_for 60 job_is "$iron" reason Unsatisfiable &&
	exits 0 gpuq update "$iron" queue=big && exits 0 gpuq wait "$iron" && job_is "$iron" flavor gold &&
	printf "version: 1\nqueues: [{name: lab, flavors: null}, {name: one, flavors: null}]\n" | exits 0 gpuq apply -f -
'

test_expect_success 'larger priority goes first' '
	gpuq cancel "$two" && job_becomes "$two" CANCELLED &&
	full=$(sh_job "sleep 300" -p big -g 2) && more=$(sh_job "sleep 300" -p one -g 2) &&
	job_becomes "$full" RUNNING && job_becomes "$more" RUNNING &&
	late=$(sh_job "sleep 300" -p big -g 1) && early=$(sh_job "sleep 300" -p big -g 1 --qos urgent) &&
	job_is "$early" state PENDING &&
	smaller=$(sh_job "sleep 300" -p small -g 1) && gpuq cancel "$smaller" &&
	gpuq queue -h -t PD >out && cat out
'

test_expect_success 'the site is kept: a second start needs no file' '
	stop_gpuqd && start_gpuqd && gpuq queues --json | json name | sort >got && test_cmp want got &&
	job_is "$full" state RUNNING && gpuq cancel "$full" "$more" "$late" "$early" && stop_gpuqd
'

test_done
