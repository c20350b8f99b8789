#!/bin/sh
test_description='names keep their letters, messages are of the last attempt, long lines are folded, options are whole'
. "$(dirname "$0")/lib.sh"

# on_term COMMAND...: on a terminal of 80 columns
on_term() {
	timeout 60 /usr/bin/python3 "$test_source/tests/sharness/onterm.py" "[]" "$@" | tr -d "\r"
}

test_expect_success 'a name keeps its letters; marks that turn text are escaped on output' '
	start_gpuqd && id=$(sh_job "true" --hold -J "größe-名前") && job_is "$id" name "größe-名前" &&
	LC_ALL=C.UTF-8 gpuq queue -h -o NAME "$id" >out && says out "größe-名前" &&
	turned=$(sh_job "true" --hold -J "a$(printf "\342\200\256")b") && LC_ALL=C.UTF-8 gpuq queue -h -o NAME "$turned" >out && says out "a.u.202e.b" && gpuq cancel "$id" "$turned"
'

test_expect_success 'a completed job does not have the message of an attempt before' '
	id=$(sh_job "[ -e second ] || { touch second; kill -9 \$\$; }" --retry 1) && gpuq wait "$id" && job_is "$id" attempt 1 && job_is "$id" message Completed
'

test_expect_success 'on a terminal why and status fold long lines at words; elsewhere they are whole' '
	long=$(sh_job "true" --hold -d "afterany:$id" -C "disk=ssd&place=a&place2=b&place3=c") && gpuq release "$long" && wait_for 60 job_is "$long" reason Unsatisfiable &&
	gpuq why "$long" >whole && awk "length > 80 { n++ } END { exit !n }" whole && on_term gpuq why "$long" >folded && ! awk "length > 80 { n++ } END { exit !n }" folded &&
	sed "s/^ *//" whole | tr -s " \n" "\n" | grep -v "^[0-9:]*$" >words && sed "/^\[exit/d; s/^ *//" folded | tr -s " \n" "\n" | grep -v "^[0-9:]*$" >words2 && test_cmp words words2 && gpuq cancel "$long"
'

test_expect_success 'planned starts and reasons of drains have columns' '
	gpuq queue -o +PLANNED >out && says out "PLANNED" && node=$(gpuq nodes -s -h -o NODE | tr -d " ") && gpuq drain "$node" --reason "new fans" && gpuq nodes -s >out && says out "new fans" && gpuq resume "$node"
'

test_expect_success 'an option that is short for several names them' '
	exits 2 gpuq slurm sbatch --tim 5 --wrap true && says err "option --tim could be --time, --time-min" &&
	exits 2 gpuq submit --nod 1 --wrap true && says err "option --nod could be --nodelist, --nodes" &&
	exits 2 gpuq submit --tmie 5 --wrap true && says err "no option --tmie; did you mean --time"
'

test_expect_success 'gpuqd takes no abbreviated option' '
	test_expect_code 2 gpuqd --vers 2>err && says err "written in full, as --version" && gpuqd --version && stop_gpuqd
'

test_done
