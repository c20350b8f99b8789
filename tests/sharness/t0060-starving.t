#!/bin/sh
test_description='jobs pending longer than starve_time start on what is free, however many they are'
. "$(dirname "$0")/lib.sh"

cat >gpuqd.yaml <<'END'
scheduler:
  starve_time: 5s
END

# running ID...: how many of them run
running() {
	running_n=0
	for running_id in "$@"; do
		[ "$(job "$running_id" state)" != RUNNING ] || running_n=$((running_n + 1))
	done
	echo "$running_n"
}

run_are() {
	run_want=$1
	shift
	run_got=$(running "$@")
	[ "$run_got" = "$run_want" ] || { echo "$run_got of $* run, not $run_want"; return 1; }
}

# older SECONDS ID: it has been pending so long
older() {
	gpuq status "$2" --json >older.json && /usr/bin/python3 - "$1" older.json <<-\END
	import datetime, json, sys
	job = json.load(open(sys.argv[2]))
	t = datetime.datetime.strptime(job["submit_time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
	age = (datetime.datetime.now(datetime.timezone.utc) - t).total_seconds()
	assert age > float(sys.argv[1]), age
	END
}

test_expect_success 'fourteen of sixteen devices are held, and the other two' '
	start_gpuqd --config gpuqd.yaml --gpus 16 &&
	held=$(sh_job "sleep 600" -g 14) && job_becomes "$held" RUNNING &&
	other=$(sh_job "sleep 600" -g 2) && job_becomes "$other" RUNNING
'

test_expect_success 'two of four starving jobs start as soon as two devices are free' '
	a=$(sh_job "sleep 600" -g 1) && b=$(sh_job "sleep 600" -g 1) &&
	c=$(sh_job "sleep 600" -g 1) && d=$(sh_job "sleep 600" -g 1) &&
	wait_for 60 older 6 "$d" && run_are 0 "$a" "$b" "$c" "$d" &&
	gpuq cancel "$other" && wait_for 60 run_are 2 "$a" "$b" "$c" "$d" && job_is "$a" state RUNNING &&
	test "$(free_gpus)" = 0
'

test_expect_success 'parts of a device start beside one another' '
	gpuq cancel "$a" && wait_for 60 job_is "$c" state RUNNING &&
	e=$(sh_job "sleep 600" -g 0.5) && f=$(sh_job "sleep 600" -g 0.5) && g=$(sh_job "sleep 600" -g 0.5) &&
	wait_for 60 older 6 "$g" && gpuq cancel "$d" && run_are 0 "$e" "$f" "$g" &&
	gpuq cancel "$b" && wait_for 60 run_are 2 "$e" "$f" "$g"
'

test_expect_success 'jobs without devices start beside one another' '
	hog=$(sh_job "sleep 600" -g 0 -c "$(nproc)") && job_becomes "$hog" RUNNING &&
	h=$(sh_job "sleep 600" -g 0 --cpus 0.3) && i=$(sh_job "sleep 600" -g 0 --cpus 0.3) &&
	j=$(sh_job "sleep 600" -g 0 --cpus 0.3) && wait_for 60 older 6 "$j" && run_are 0 "$h" "$i" "$j" &&
	gpuq cancel "$hog" && wait_for 60 run_are 3 "$h" "$i" "$j"
'

test_expect_success 'devices that a starving job cannot use yet are not kept for it alone' '
	big=$(sh_job "sleep 600" -g 16) && small=$(sh_job "sleep 600" -g 1) && wait_for 60 older 6 "$small" &&
	gpuq cancel "$g" "$c" && wait_for 60 run_are 1 "$small" && run_are 0 "$big" && stop_gpuqd
'

test_done
