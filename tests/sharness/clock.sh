# clock.sh - a wall clock that is not the machine's, for gpuqd and what else shall see it
#
# Read by tests behind lib.sh.

CLOCK_SHIM=$PWD/clock
clock_shim=$test_build/tests/sharness/.libs/clock_shim.so
[ -r "$clock_shim" ] || { echo "$clock_shim: not there; make check builds it" >&2; exit 99; }
ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export CLOCK_SHIM ASAN_OPTIONS

# clock_by SECONDS: how far it is ahead of the machine's
clock_by() {
	echo "$1" >clock.new && mv clock.new clock
}
# clock_to TIME: of the Monday that tests of the calendar are about, in UTC
clock_to() {
	clock_by "$(($(date -d "2035-03-05T$1Z" +%s) - $(date +%s)))"
}
# shimmed COMMAND: it sees this clock
shimmed() {
	(
		LD_PRELOAD=$clock_shim
		export LD_PRELOAD
		exec "$@"
	)
}
# clock_start GPUS: a daemon of the local cluster that sees it, with site.yaml
clock_start() {
	(
		LD_PRELOAD=$clock_shim
		export LD_PRELOAD
		exec gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus "$1" --site site.yaml \
			</dev/null >>gpuqd.log 2>&1 3>&- 4>&- 5>&-
	) &
	gpuqd_pid=$!
	wait_gpuqd
}
