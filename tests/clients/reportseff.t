#!/bin/sh
test_description='reportseff: what ended jobs used'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'CPU and memory of a job, by its number and by its output file' '
	sbatch --wait --mem=200M -t 5 -o "busy_%j.out" --wrap "sh -c \"ulimit -t 2; while :; do :; done\"; true" &&
	timeout 60 reportseff --no-color 1 >byid && says byid "^ *1 +COMPLETED +00:0[0-9]:" && timeout 60 reportseff --no-color >byfile && says byfile "busy_1.*COMPLETED" &&
	awk "\$1 == 1 { sub(\"%\", \"\", \$5); exit !(\$5 > 0) }" byid
'

test_done
