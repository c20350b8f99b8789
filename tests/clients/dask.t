#!/bin/sh
test_description='dask-jobqueue: workers as jobs'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'two workers come, compute, and go' '
	cat >workers.py <<-\END &&
	from dask_jobqueue import SLURMCluster
	from distributed import Client
	if __name__ == "__main__":
	    cluster = SLURMCluster(cores=1, memory="300MB", processes=1, walltime="00:05:00", interface="lo",
	                           local_directory=".", log_directory="log")
	    cluster.scale(jobs=2)
	    c = Client(cluster)
	    c.wait_for_workers(2, timeout=90)
	    assert sum(c.gather(c.map(lambda x: x * x, range(10)))) == 285
	    c.close()
	    cluster.close()
	END
	timeout 180 "$client" workers.py && wait_for 30 eval "test -z \"\$(squeue -h)\"" && test "$(sacct -n -X | wc -l)" = 2
'

test_done
