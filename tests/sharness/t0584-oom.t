#!/bin/sh
test_description='a job of which the kernel killed a process for memory is OUT_OF_MEMORY, however its script ends'
. "$(dirname "$0")/lib.sh"

# Control groups need root and a tree that can be written to.
if [ "$(id -u)" != 0 ] || ! { [ -w /sys/fs/cgroup/memory/cgroup.procs ] || [ -w /sys/fs/cgroup/cgroup.subtree_control ]; }; then
	skip_all='no control groups of memory can be made here'
	test_done
fi

# hog: a script whose child takes 200 MB under a limit of 48
hog="/usr/bin/python3 -c 'x = bytearray(200 << 20); x[::4096] = b\"x\" * len(x[::4096])'"

test_expect_success 'start' '
	start_gpuqd && mkdir bin && for n in sbatch sacct squeue seff; do ln -s "$test_build/gpuq/gpuq" bin/$n || return 1; done && PATH=$PWD/bin:$PATH
'

test_expect_success 'a script that goes on and exits with 0' '
	id=$(sbatch --parsable --mem=48M --wrap "$hog; true") && exits 137 gpuq wait "$id" && job_is "$id" state OUT_OF_MEMORY && job_is "$id" exit_code 137 &&
	sacct -n -X -P -o State,ExitCode -j "$id" >out && says out "^OUT_OF_MEMORY|0:125$" && squeue -h -t all -o %r -j "$id" >out && says out "^OutOfMemory$" && seff "$id" >out && says out OUT_OF_MEMORY &&
	gpuq status "$id" >out && says out "memory limit of 50331648 bytes"
'

test_expect_success 'a script that fails with a code of its own keeps it' '
	id=$(sbatch --parsable --mem=48M --wrap "$hog; exit 3") && test_might_fail gpuq wait "$id" && job_is "$id" state OUT_OF_MEMORY && sacct -n -X -P -o ExitCode -j "$id" >out && says out "^0:125$"
'

test_expect_success 'it is tried again for oom, and for a code that it names' '
	id=$(submit --mem 48M --retry 1:oom --wrap "$hog; true") && exits 137 gpuq wait "$id" && job_is "$id" attempt 1 &&
	id=$(submit --mem 48M --retry 1:exit:3 --wrap "$hog; exit 3") && exits 3 gpuq wait "$id" && job_is "$id" attempt 1 &&
	id=$(submit --mem 48M --retry 1:failure --wrap "$hog; true") && exits 137 gpuq wait "$id" && job_is "$id" attempt 0
'

test_expect_success 'one that keeps to its limit is COMPLETED' '
	id=$(sbatch --parsable --mem=48M --wrap "true") && gpuq wait "$id" && job_is "$id" state COMPLETED && stop_gpuqd
'

test_done
