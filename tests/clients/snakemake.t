#!/bin/sh
test_description='Snakemake: rules as jobs of an account'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'three parts and what depends on them' '
	cat >Snakefile <<-\END &&
	rule all:
	    input: "count.txt"
	rule one:
	    output: "part-{i}.txt"
	    shell: "echo {wildcards.i} >{output}"
	rule count:
	    input: expand("part-{i}.txt", i=[1, 2, 3])
	    output: "count.txt"
	    shell: "cat {input} | wc -l >{output}"
	END
	timeout 300 snakemake --executor slurm --jobs 4 --latency-wait 5 --slurm-init-seconds-before-status-checks 2 \
		--default-resources slurm_account=default slurm_partition=default runtime=5 mem_mb=600 &&
	test "$(cat count.txt)" = 3 && test "$(sacct -n -X -o State,Account | sort | uniq -c | tr -s " ")" = " 4 COMPLETED default "
'

test_expect_success 'an account that there is not is named, with those that there are' '
	rm -f count.txt part-*.txt && ! timeout 120 snakemake --executor slurm --jobs 4 \
		--default-resources slurm_account=nobody slurm_partition=default runtime=5 mem_mb=600 >log 2>&1 && says log "account nobody appears to be invalid"
'

test_done
