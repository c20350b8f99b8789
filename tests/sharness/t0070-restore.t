#!/bin/sh
test_description='a restored backup: what runs goes on, and no number is given twice'
. "$(dirname "$0")/lib.sh"

# lasting NAME [option...]: a job that writes its process id to NAME.pid, and its name to its output
lasting() {
	lasting_name=$1
	shift
	sh_job "echo \$\$ >'$PWD/$lasting_name.pid'; echo this is $lasting_name; exec sleep 600" --name "$lasting_name" -g 1 "$@"
}

lives() {
	kill -0 "$(cat "$1.pid")"
}

runs() {
	wait_for 60 test -s "$1.pid" && lives "$1"
}

# The state directory has the backup for a database, and nothing else has changed.
copy_back() {
	rm -f state/data.mdb state/lock.mdb && cp "$1" state/data.mdb
}

# restored FIELD: of what gpuq status tells of the recovery
restored() {
	gpuq status --json | json "recovering.$1"
}

restored_is() {
	test "$(restored "$1")" = "$2"
}

is_over() {
	test "$(gpuq status --json | json recovering)" = null
}

test_expect_success 'a backup, and what happens after it' '
	start_gpuqd &&
	a=$(lasting first) && h=$(lasting held --hold) && job_becomes "$a" RUNNING && runs first &&
	gpuq backup backup.mdb && rm -f backup2.mdb && cp backup.mdb backup2.mdb &&
	b=$(lasting second --time 30m) && job_becomes "$b" RUNNING && runs second &&
	gpuq release "$h" && job_becomes "$h" RUNNING && runs held &&
	gpuq status "$b" --json >second.json && kill_gpuqd
'

test_expect_success 'a copied database: nothing that runs is ended' '
	copy_back backup.mdb && start_gpuqd && sleep 2 && lives first && lives second && lives held &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING && job_becomes "$h" RUNNING
'

test_expect_success 'no number is given twice' '
	c=$(sh_job true) && test "$c" -gt 1000000 && exits 0 gpuq wait "$c"
'

test_expect_success 'a job that the copy does not know is the same job again' '
	for key in id name user queue qos submit_time time_limit_s gpus; do
		was=$(json "$key" <second.json) && { job_is "$b" "$key" "$was" || return 1; }
	done &&
	test "$(job "$b" pods.0.devices.0.index)" = "$(json pods.0.devices.0.index <second.json)" &&
	test "$(free_gpus)" = 1
'

test_expect_success 'its output is shown, and that of the others' '
	gpuq logs "$b" >log && says log "^this is second$" && gpuq logs "$a" >log && says log "^this is first$" &&
	gpuq logs "$h" >log && says log "^this is held$"
'

test_expect_success 'status and recover tell of it' '
	restored_is adopted 2 && restored_is unknown 0 && restored_is listed true &&
	gpuq status >out && says out "^Recovering .*2 adopted, 0 unknown" &&
	gpuq recover >out && says out "^Job $b .second of .*recovered from its pods" &&
	gpuq recover --json >out && test "$(json jobs.0.job <out)" = "$b"
'

test_expect_success 'a restart in the middle of it' '
	kill_gpuqd && start_gpuqd && job_becomes "$b" RUNNING && lives second && restored_is adopted 2 &&
	d=$(sh_job true) && test "$d" -gt "$c"
'

test_expect_success 'it cannot be requeued, and is not tried again' '
	exits 1 gpuq requeue "$b" && says err "recovered from its pods" &&
	kill -KILL "$(cat second.pid)" && job_becomes "$b" FAILED && job_is "$b" attempt 0
'

test_expect_success 'what it used is charged' '
	test "$(job "$b" gpu_seconds | cut -d. -f1)" -ge 1 && job_is "$b" exit_code 137
'

test_expect_success 'the recovery ends by itself' '
	wait_for 60 is_over && gpuq events --audit --json >out && says out "recovery.finish" &&
	exits 1 gpuq recover --finish && says err "nothing is being recovered"
'

test_expect_success 'a job that ran, and whose pods are gone, may have ended: it is held' '
	gpuq cancel "$a" && job_becomes "$a" CANCELLED && kill_gpuqd &&
	copy_back backup2.mdb && start_gpuqd && wait_for 60 restored_is listed true &&
	job_becomes "$a" PENDING && wait_for 60 job_is "$a" reason RestoredUnknown && job_is "$a" reasons.0.who operator &&
	restored_is held 1 && gpuq recover >out && says out "^Job $a .*held, it may have ended" &&
	gpuq doctor >out && says out "1 job may have ended before the restore" && sleep 1 && job_is "$a" state PENDING
'

test_expect_success 'it is not charged for what is not known' '
	test "$(job "$a" gpu_seconds | cut -d. -f1)" -le 5
'

test_expect_success 'release starts it once more' '
	rm first.pid && gpuq release "$a" && job_becomes "$a" RUNNING && runs first && job_is "$a" attempt 1 &&
	gpuq cancel "$a" && job_becomes "$a" CANCELLED && wait_for 60 is_over
'

test_expect_success 'ended jobs of the copy keep their numbers too' '
	e=$(sh_job true) && test "$e" -gt "$d" && exits 0 gpuq wait "$e"
'

test_expect_success 'restore only into an empty state' '
	stop_gpuqd && exits 78 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 --restore "$PWD/backup.mdb" &&
	says err "data.mdb exists"
'

test_expect_success 'what is no backup leaves it empty' '
	rm -f state/data.mdb state/lock.mdb state/mark && head -c 10000 backup.mdb >cut.mdb && echo no >no.mdb &&
	exits 74 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --restore "$PWD/cut.mdb" &&
	exits 74 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --restore "$PWD/no.mdb" &&
	exits 78 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --restore "$PWD/none.mdb" &&
	! test -e state/data.mdb
'

test_expect_success 'gpuqd --restore' '
	lives held && start_gpuqd --restore "$PWD/backup.mdb" && job_becomes "$h" RUNNING && lives held &&
	wait_for 60 job_is "$a" reason RestoredUnknown && f=$(sh_job true) && test "$f" -gt "$e" &&
	exits 0 gpuq wait "$f"
'

test_expect_success 'finish: what is held stays held' '
	exits 0 gpuq recover --finish && is_over && job_is "$a" reason RestoredUnknown &&
	gpuq recover >out && says out "Nothing is being recovered" && gpuq events --audit --json >out &&
	says out "recovery.finish" && gpuq cancel "$a" && job_becomes "$a" CANCELLED
'

test_expect_success 'the output of a former job of the same number is not shown' '
	id=$(gpuq version --json | json server.cluster.id 2>/dev/null || ls state/logs | sed -n "s/^gpuq-\([0-9a-f]*\)-.*/\1/p" | head -n 1) &&
	next=$((f + 1)) && echo secret >"state/logs/gpuq-$id-$next-0-0.log" &&
	g=$(sh_job "echo mine") && test "$g" = "$next" && exits 0 gpuq wait "$g" &&
	gpuq logs "$g" >out && says out "^mine$" && ! grep secret out
'

test_expect_success 'a local pod without a record is kept, and shown' '
	k=$(lasting kept) && runs kept && stop_gpuqd && pod=$(cd state/local && ls -d gpuq-*-"$k"-0-0) &&
	tr "\0" "\n" <"state/local/$pod/order" | sed "/^record=/d" | tr "\n" "\0" >order && cp order "state/local/$pod/order" &&
	copy_back backup2.mdb && start_gpuqd && wait_for 60 restored_is pods 1 && sleep 1 && lives kept &&
	gpuq doctor >out && says out "$pod .no annotation gpuq.io/record" && gpuq recover >out && says out "^Pod $pod .*kept" &&
	exits 254 gpuq logs "$k"
'

test_expect_success 'its device is not given to others' '
	test "$(free_gpus)" = 2 && n=$(lasting more) && o=$(lasting most) && runs more && runs most &&
	d1=$(job "$n" pods.0.devices.0.index) && d2=$(job "$o" pods.0.devices.0.index) && test "$d1" != "$d2" &&
	taken=$(tr "\0" "\n" <"state/local/$pod/order" | sed -n "s/^devices=//p") && test "$taken" != "$d1" && test "$taken" != "$d2" &&
	q=$(lasting one-too-many) && sleep 1 && job_is "$q" state PENDING && gpuq cancel "$n" "$o" "$q"
'

test_expect_success 'it stays after the recovery, across restarts' '
	gpuq recover --finish && kill_gpuqd && start_gpuqd && sleep 1 && lives kept && gpuq doctor >out && says out "$pod" &&
	kill -KILL "$(cat kept.pid)" && wait_for 60 eval "! test -e state/local/$pod" && gpuq cancel "$h" && job_becomes "$h" CANCELLED && stop_gpuqd
'

test_done
