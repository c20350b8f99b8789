#!/bin/sh
# The same plans whatever compiled the core: gcc and clang, without and with optimisation.
set -u
src=${top_srcdir:-.} build=${top_builddir:-.}
cases=${GPUQ_DETERMINISM_CASES:-2000}
lib=$build/libgpuq/.libs/libgpuq-internal.a
test -f "$lib" || { echo "Bail out! $lib is not there"; exit 99; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# The files that decide; the state of the daemon is not among them, and needs more libraries.
core=$(find "$src/gpuqd/util" "$src/gpuqd/snapshot" "$src/gpuqd/sched" -name '*.c' |
	grep -vE '/(cycle_record|displaced|snapshot_pack|snapshot_keep|snapshot_take(_[a-z]+)?|snapshot_choices)\.c$')
core="$core $src/gpuqd/state/usage.c"
n=0 first=
say() { # STATUS WHAT
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

# The build at hand is one of them; under sanitizers it is the only one.
for how in built 'gcc -O0' 'clang -O0' 'clang -O2'; do
	cc=${how%% *} level=${how#* }
	if [ "$cc" = built ]; then
		first=$("$build/tests/prop/plan_sums" "$cases" | tail -n 1)
		[ -n "$first" ]
		say $? "as built: $first"
		grep -q '^[A-Z_]*FLAGS = .*fsanitize' "$build/Makefile" && break
		continue
	fi
	command -v "$cc" >/dev/null || continue
	# shellcheck disable=SC2086
	if ! nice "$cc" -std=c17 -D_GNU_SOURCE $level -I"$src" -I"$build" \
		$core "$src"/tests/prop/any_make.c "$src"/tests/prop/any_check.c "$src"/tests/prop/any_cycle.c \
		"$src"/tests/prop/plan_sums.c "$lib" -lm -o "$dir/sums" 2>"$dir/err"; then
		sed 's/^/# /' "$dir/err"
		say 1 "$cc $level builds the core"
		continue
	fi
	sum=$("$dir/sums" "$cases" | tail -n 1)
	[ -n "$sum" ] && [ "$sum" = "$first" ]
	say $? "$cc $level: $sum"
done
echo "1..$n"
