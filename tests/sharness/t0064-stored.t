#!/bin/sh
test_description='what a user may have stored: jobs, and bytes of what was submitted'
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ] && getent passwd nobody >/dev/null; then
	test_set_prereq OTHER
fi
other() { as nobody "$@"; }
site() { printf '%s\nversion: 1\nqueues: [{name: default, quota: unlimited, limit: unlimited}]\n' "$*" >site.yaml; }
# The jobs are root's; those of nobody are counted, those of an operator are not.
echo '{command: [sleep, "1000"], hold: true}' >job.yaml
{ printf '#!/bin/sh\n#GPUQ --hold\n'; head -c 3000 /dev/zero | tr '\0' '#'; printf '\nsleep 1000\n'; } >big.sh
chmod a+r job.yaml big.sh
put() { other gpuq submit --parsable --export=NONE "$@" "$TMPDIR/job.yaml"; }
refused() { exits 1 other gpuq submit --export=NONE "$TMPDIR/$1"; }

test_expect_success OTHER 'so many jobs, an array counts as one' '
	cp job.yaml big.sh "$TMPDIR" && site "max_submitted: 3" && start_gpuqd --site "$PWD/site.yaml" && open_to_all &&
	first=$(put) && put --array=0-999 >array && put >/dev/null && refused job.yaml &&
	says err "max_submitted" && says err "may have 3 jobs that have not ended.* number 4 of nobody" && says err "cancel some"
'

test_expect_success OTHER 'an operator may have more' '
	for i in 1 2 3 4 5; do submit job.yaml || return 1; done >ids && test "$(wc -l <ids)" = 5
'

test_expect_success OTHER 'jobs of one call count together, and none of them is taken' '
	other gpuq cancel "$first" && job_becomes "$first" CANCELLED && printf "%s\n---\n%s\n" "$(cat job.yaml)" "$(cat job.yaml)" >"$TMPDIR/two.yaml" &&
	before=$(in_queue) && refused two.yaml && says err "job 2 of 2.*max_submitted" && test "$(in_queue)" = "$before"
'

test_expect_success OTHER 'what has ended counts no more, and a restart counts the same' '
	id=$(put) && refused job.yaml && stop_gpuqd && start_gpuqd && open_to_all && refused job.yaml && says err "number 4 of" &&
	other gpuq cancel "$id" "$(cat array)" && job_becomes "$id" CANCELLED && put >/dev/null
'

test_expect_success OTHER 'so many bytes: scripts and environments as they were submitted' '
	site "max_stored: 8Ki
max_submitted: unlimited" && gpuq apply -f site.yaml && other gpuq submit --export=NONE "$TMPDIR/big.sh" &&
	other gpuq submit --parsable --export=NONE "$TMPDIR/big.sh" >id && refused big.sh &&
	says err "max_stored" && says err "may take 8Ki as submitted.*those of nobody take [0-9]* bytes" &&
	other gpuq cancel "$(cat id)" && job_becomes "$(cat id)" CANCELLED && other gpuq submit --export=NONE "$TMPDIR/big.sh" &&
	gpuq submit big.sh && site "max_stored: unlimited" && gpuq apply -f site.yaml && other gpuq submit --export=NONE "$TMPDIR/big.sh"
'

test_expect_success 'what is wrong is told with its place' '
	{ [ -n "$gpuqd_pid" ] || start_gpuqd; } && site "max_stored: much" && exits 1 gpuq apply -f site.yaml && says err "site.yaml:1:13: max_stored: expected a size such as 512Mi or 1Gi, or unlimited" &&
	site "max_submitted: -1" && exits 1 gpuq apply -f site.yaml && says err "site.yaml:1:16: max_submitted" &&
	site "max_submitted: 7
max_stored: 512Mi" && gpuq apply -f site.yaml && gpuq export >out && says out "max_submitted: 7" && says out "max_stored: 512Mi"
'

test_done
