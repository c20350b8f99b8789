#!/bin/sh
test_description='submitit: jobs, arrays, errors, checkpoints'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'a job gives its result, and one that fails its error' '
	cat >plain.py <<-\END &&
	import submitit
	ex = submitit.AutoExecutor(folder="log", cluster="slurm")
	ex.update_parameters(timeout_min=5, name="plain")
	def add(a, b):
	    return a + b, submitit.JobEnvironment().job_id
	job = ex.submit(add, 20, 22)
	value, number = job.result()
	assert value == 42 and number == job.job_id, (value, number, job.job_id)
	def bad():
	    raise ValueError("this is bad")
	job = ex.submit(bad)
	e = job.exception()
	assert "this is bad" in str(e), e
	assert job.get_info(mode="force")["State"] == "FAILED", job.get_info()
	END
	timeout 120 "$client" plain.py
'

test_expect_success 'the elements of an array have folders of their own, by SLURM_JOB_ID' '
	cat >elements.py <<-\END &&
	import os, submitit
	ex = submitit.AutoExecutor(folder="log/%A", cluster="slurm")
	ex.update_parameters(timeout_min=5, slurm_array_parallelism=2)
	def square(x):
	    return x * x, os.environ["SLURM_JOB_ID"], os.environ["SLURM_ARRAY_JOB_ID"]
	jobs = ex.map_array(square, range(5))
	got = [j.result() for j in jobs]
	assert [g[0] for g in got] == [0, 1, 4, 9, 16], got
	assert len({g[1] for g in got}) == 5 and len({g[2] for g in got}) == 1, got
	END
	timeout 120 "$client" elements.py
'

test_expect_success 'a checkpoint requeues its job, six at once, and each ends well' '
	cat >save.py <<-\END &&
	import os, time, submitit
	class Count:
	    def __call__(self, start, mark):
	        if start:
	            return start
	        open(mark, "w").close()
	        time.sleep(120)
	    def checkpoint(self, start, mark):
	        return submitit.helpers.DelayedSubmission(Count(), 7, mark)
	ex = submitit.AutoExecutor(folder="log", cluster="slurm")
	ex.update_parameters(timeout_min=10, slurm_additional_parameters={"cpus": 0})
	jobs = [ex.submit(Count(), 0, "mark%d" % i) for i in range(6)]
	end = time.time() + 120
	while not all(os.path.exists("mark%d" % i) for i in range(6)):
	    assert time.time() < end, [j.state for j in jobs]
	    time.sleep(0.1)
	for j in jobs:
	    j._interrupt()
	assert [j.result() for j in jobs] == [7] * 6
	# A result is there a moment before its job has ended.
	while any(j.get_info(mode="force")["State"] in ("RUNNING", "COMPLETING") for j in jobs):
	    assert time.time() < end + 120, [j.get_info() for j in jobs]
	    time.sleep(0.2)
	assert all(j.get_info(mode="force")["State"] == "COMPLETED" for j in jobs)
	END
	timeout 300 "$client" save.py
'

test_done
