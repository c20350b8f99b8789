#!/bin/sh
test_description='hydra with its submitit launcher: a sweep'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'each point of a sweep is a job' '
	cat >sweep.py <<-\END &&
	import hydra, os
	@hydra.main(version_base=None, config_path=None)
	def main(cfg):
	    x = int(cfg.x)
	    with open(os.path.join(hydra.utils.get_original_cwd(), f"point-{x}"), "w") as f:
	        f.write("%d %s\n" % (x * x, os.environ["SLURM_JOB_ID"]))
	    return x * x
	if __name__ == "__main__":
	    main()
	END
	timeout 120 "$client" sweep.py -m hydra/launcher=submitit_slurm hydra.launcher.timeout_min=5 +x=1,2,3 &&
	cut -d" " -f1 point-1 point-2 point-3 | tr "\n" " " | says /dev/stdin "^1 4 9 $" &&
	test "$(cut -d" " -f2 point-1 point-2 point-3 | sort -u | wc -l)" = 3
'

test_done
