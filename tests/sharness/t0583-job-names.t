#!/bin/sh
test_description='names of jobs: all of their bytes in store, environment and JSON; controls and bidi marks are escaped on output'
. "$(dirname "$0")/lib.sh"

LC_ALL=C.UTF-8
export LC_ALL
# Blanks at the ends, letters of two scripts, what shells, lists and Kubernetes read, a line feed, a bidi mark, an escape.
name=$(printf ' a/b [x]: größe-名前 $(HOME) %%j, "q"\n\342\200\256\033[31mred ')
shown=' a/b [x]: größe-名前 $(HOME) %j, "q"\x0a\u{202e}\x1b[31mred '

# json_name FILE: the name in its first line of JSON is $name
json_name() {
	/usr/bin/python3 -c 'import json, sys; got = json.loads(open(sys.argv[1]).readline())["name"]; sys.exit(got != sys.argv[2] and repr(got))' "$1" "$name"
}

# names_are FILE: its only line is $shown
names_are() {
	test "$(cat "$1")" = "$shown"
}

test_expect_success 'the bytes of a name reach the job' '
	start_gpuqd && mkdir bin && for n in sbatch squeue sacct scontrol; do ln -s "$test_build/gpuq/gpuq" bin/$n || return 1; done && PATH=$PWD/bin:$PATH &&
	printf "%s" "$name" >want && id=$(sbatch --parsable -J "$name" --wrap "printf %s \"\$SLURM_JOB_NAME\" >slurm; printf %s \"\$GPUQ_JOB_NAME\" >own") &&
	gpuq wait "$id" && test_cmp want slurm && test_cmp want own
'

test_expect_success 'lists and JSON of gpuq and of the Slurm names have it, also after a restart' '
	held=$(sbatch --parsable -H -J "$name" --wrap true) && stop_gpuqd && start_gpuqd &&
	gpuq queue --json "$held" >out && json_name out && gpuq history --json "$id" >out && json_name out &&
	squeue --json -j "$held" >out && /usr/bin/python3 -c "import json, sys; sys.exit(json.load(open(\"out\"))[\"jobs\"][0][\"name\"] != sys.argv[1])" "$name" &&
	sacct --json -j "$id" >out && /usr/bin/python3 -c "import json, sys; sys.exit(json.load(open(\"out\"))[\"jobs\"][0][\"name\"] != sys.argv[1])" "$name" &&
	gpuq queue -h -o NAME "$held" >out && names_are out && squeue -h -o %j -j "$held" >out && names_are out && sacct -n -X -P -o JobName -j "$id" >out && names_are out &&
	scontrol show job "$held" >out && head -n 1 out | grep -qF "JobName=$shown" && test "$(grep -c red out)" = 1 && gpuq status "$held" >out && grep -qF "$shown" out && gpuq why "$held" >out && grep -qF "$shown" out
'

test_expect_success 'a job file has it, and status -o yaml gives it back' '
	gpuq status "$held" -o yaml >job.yaml && copy=$(submit -H job.yaml) && gpuq queue --json "$copy" >out && json_name out &&
	printf "name: \"a/b: c\"\ncommand: [\"true\"]\nhold: true\n" >plain.yaml && p=$(submit plain.yaml) && job_is "$p" name "a/b: c" &&
	gpuq update "$p" name="d [e]" && job_is "$p" name "d [e]" && scontrol update jobid="$p" JobName="f: g/h" && job_is "$p" name "f: g/h" && squeue -h -o %j -n "f: g/h" >out && says out "^f: g/h$" && gpuq cancel --name "f: g/h" && job_is "$p" state CANCELLED
'

test_expect_success 'a script is named as its file is' '
	printf "#!/bin/sh\n" >"my job (1).sh" && s=$(sbatch --parsable -H "my job (1).sh") && job_is "$s" name "my job (1).sh" &&
	printf "#!/bin/sh\n#SBATCH -H -J \"zwei Wörter\"\n" >x.sh && s=$(sbatch --parsable x.sh) && job_is "$s" name "zwei Wörter"
'

test_expect_success 'what is no UTF-8 is replaced, what is too long is cut between characters, with a warning; a job file is refused' '
	s=$(sbatch --parsable -H -J "$(printf "a\377b")" --wrap true 2>err) && job_is "$s" name a-b && says err "becomes .a-b" &&
	long=$(printf "%0254d" 7) && s=$(sbatch --parsable -H -J "${long}x" --wrap true 2>err) && job_is "$s" name "${long}x" && test_must_be_empty err &&
	s=$(sbatch --parsable -H -J "${long}ö" --wrap true 2>err) && job_is "$s" name "$long" && says err becomes &&
	s=$(sbatch --parsable -H -J "" --wrap true) && job_is "$s" name job &&
	printf "name: %s\ncommand: [a]\n" "${long}xy" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "name"
'

test_expect_success '%x is the name as it is: a slash is a folder, which must be there' '
	mkdir made && s=$(sbatch --parsable -J "made/a b" -o "%x.out" --wrap "echo here") && gpuq wait "$s" && says "made/a b.out" here && gpuq logs "$s" >out && says out here &&
	s=$(sbatch --parsable -J "absent/a" -o "%x.out" --wrap "echo here") && ! gpuq wait "$s" 2>/dev/null && test ! -e absent && gpuq status "$s" >out && says out "absent/a.out"
'

test_expect_success 'singletons are by the whole name' '
	a=$(sbatch --parsable -H -J "x y" --wrap true) && b=$(sbatch --parsable -d singleton -J "x y" --wrap true) && c=$(sbatch --parsable -d singleton -J "x-y" --wrap true) &&
	gpuq wait "$c" && job_is "$b" state PENDING && gpuq cancel "$a" && gpuq wait "$b" && gpuq cancel --me && stop_gpuqd
'

test_done
