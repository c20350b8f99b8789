#!/bin/sh
# The same plans whatever compiled the core: gcc and clang, without and with optimisation.
set -u
src=${top_srcdir:-.} build=${top_builddir:-.}
cases=${GPUQ_DETERMINISM_CASES:-2000}
lib=$build/libgpuq/.libs/libgpuq-internal.a
test -f "$lib" || { echo "Bail out! $lib is not there"; exit 99; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# What decides; the state of the daemon is another matter, and needs more libraries.
core=$(find "$src/gpuqd/core" -name '*.c' |
	grep -vE '/(change|model[a-z_]*|rec|record|request|site|view)\.c$')
n=0 first=
say() { # STATUS WHAT
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

for cc in gcc clang; do
	command -v "$cc" >/dev/null || continue
	for level in -O0 -O2; do
		# shellcheck disable=SC2086
		if ! nice "$cc" -std=c17 -D_GNU_SOURCE $level -I"$src" -I"$build" \
			$core "$src"/tests/prop/any_make.c "$src"/tests/prop/any_check.c \
			"$src"/tests/prop/plan_sums.c "$lib" -lm -o "$dir/sums" 2>"$dir/err"; then
			sed 's/^/# /' "$dir/err"
			say 1 "$cc $level builds the core"
			continue
		fi
		sum=$("$dir/sums" "$cases" | tail -n 1)
		: "${first:=$sum}"
		[ -n "$sum" ] && [ "$sum" = "$first" ]
		say $? "$cc $level: $sum"
	done
done
[ "$n" = 0 ] && { echo "1..0 # SKIP no compiler"; exit 0; }
echo "1..$n"
