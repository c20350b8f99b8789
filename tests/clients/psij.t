#!/bin/sh
test_description='psij: jobs and their exit codes'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'what ended well, and what did not' '
	cat >jobs.py <<-\END &&
	import datetime, pathlib, psij
	ex = psij.JobExecutor.get_instance("slurm")
	jobs = []
	for i in range(3):
	    spec = psij.JobSpec(executable="/bin/sh", arguments=["-c", f"echo {i}; exit {i}"], stdout_path=pathlib.Path(f"out-{i}"), launcher="single")
	    spec.attributes = psij.JobAttributes(duration=datetime.timedelta(minutes=5), queue_name="default", account="default")
	    spec.resources = psij.ResourceSpecV1(node_count=1, processes_per_node=1, cpu_cores_per_process=1)
	    jobs.append(psij.Job(spec))
	    ex.submit(jobs[-1])
	for i, job in enumerate(jobs):
	    status = job.wait(datetime.timedelta(seconds=90))
	    assert status and status.state == (psij.JobState.FAILED if i else psij.JobState.COMPLETED) and status.exit_code in (None, i), (i, status)
	END
	timeout 180 "$client" jobs.py && test "$(cat out-0 out-1 out-2 | tr -d "\n")" = 012
'

test_expect_success 'a job that is cancelled' '
	cat >cancel.py <<-\END &&
	import datetime, psij
	ex = psij.JobExecutor.get_instance("slurm")
	job = psij.Job(psij.JobSpec(executable="/bin/sleep", arguments=["300"], launcher="single"))
	ex.submit(job)
	job.wait(datetime.timedelta(seconds=60), [psij.JobState.ACTIVE])
	assert job.status.state == psij.JobState.ACTIVE, job.status
	job.cancel()
	assert job.wait(datetime.timedelta(seconds=60)).state == psij.JobState.CANCELED, job.status
	END
	timeout 180 "$client" cancel.py
'

test_done
