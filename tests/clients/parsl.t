#!/bin/sh
test_description='parsl: an executor as a job that starts its workers by srun'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'apps run in the job, which is cancelled at the end' '
	cat >apps.py <<-\END &&
	import parsl
	from parsl.app.app import python_app
	from parsl.config import Config
	from parsl.executors import HighThroughputExecutor
	from parsl.launchers import SrunLauncher
	from parsl.providers import SlurmProvider
	slurm = SlurmProvider(partition="default", nodes_per_block=1, init_blocks=1, max_blocks=1, walltime="00:05:00",
	                      exclusive=False, launcher=SrunLauncher())
	htex = HighThroughputExecutor(label="htex", address="127.0.0.1", max_workers_per_node=1, cores_per_worker=1, provider=slurm)
	with parsl.load(Config(executors=[htex], strategy="none")):
	    @python_app
	    def square(x):
	        import os
	        return x * x, os.environ["SLURM_JOB_ID"]
	    got = [square(i).result(timeout=90) for i in range(3)]
	assert [g[0] for g in got] == [0, 1, 4] and len({g[1] for g in got}) == 1, got
	END
	timeout 180 "$client" apps.py && wait_for 30 eval "test -z \"\$(squeue -h)\""
'

test_done
