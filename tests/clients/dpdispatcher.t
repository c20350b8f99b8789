#!/bin/sh
test_description='dpdispatcher: tasks with folders of their own'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'each task is a job, whose files come back' '
	mkdir -p work/a work/b && cat >tasks.py <<-\END &&
	from dpdispatcher import Machine, Resources, Submission, Task
	machine = Machine.load_from_dict({"batch_type": "Slurm", "context_type": "LocalContext", "local_root": "./", "remote_root": "./remote"})
	resources = Resources.load_from_dict({"number_node": 1, "cpu_per_node": 1, "gpu_per_node": 1, "queue_name": "default",
	                                      "group_size": 1, "custom_flags": ["#SBATCH --time=5"]})
	tasks = [Task(command="echo $SLURM_JOB_ID >out.txt", task_work_path=d, forward_files=[], backward_files=["out.txt"]) for d in ("a", "b")]
	Submission(work_base="work/", machine=machine, resources=resources, task_list=tasks).run_submission(check_interval=1)
	END
	timeout 180 "$client" tasks.py && test "$(cat work/a/out.txt work/b/out.txt | sort -u | wc -l)" = 2
'

test_done
