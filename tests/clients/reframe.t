#!/bin/sh
test_description='ReFrame: checks as jobs'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'two tasks of srun, and a program that fails as it should' '
	cat >site.py <<-\END && cat >checks.py <<-\END2 &&
	site_configuration = {
	    "systems": [{"name": "here", "hostnames": [".*"], "partitions": [
	        {"name": "p", "scheduler": "slurm", "launcher": "srun", "access": ["-p default"], "environs": ["builtin"]}]}],
	    "environments": [{"name": "builtin"}],
	}
	END
	import reframe as rfm
	import reframe.utility.sanity as sn
	class Base(rfm.RunOnlyRegressionTest):
	    valid_systems = ["*"]
	    valid_prog_environs = ["*"]
	    time_limit = "5m"
	@rfm.simple_test
	class Tasks(Base):
	    executable = "printenv"
	    executable_opts = ["SLURM_PROCID"]
	    num_tasks = 2
	    @sanity_function
	    def check(self):
	        return sn.assert_eq(sn.count(sn.findall(r"^[01]$", self.stdout)), 2)
	@rfm.simple_test
	class Fails(Base):
	    executable = "false"
	    @sanity_function
	    def check(self):
	        return sn.assert_eq(self.job.exitcode, 1)
	END2
	timeout 180 reframe --nocolor -C site.py -c checks.py -r >log && says log "Ran 2/2 test case.*0 failure"
'

test_done
