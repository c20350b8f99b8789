#!/bin/sh
# gpuq-sim pack: its figures can be recomputed from its placements, a seed means the same
# everywhere, and bad lists are refused with file and line.
set -u
sim=${top_builddir:-.}/gpuqd/gpuq-sim
test -x "$sim" || { echo "Bail out! $sim is not there"; exit 99; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

n=0
say() { # STATUS WHAT
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

{
	echo sn,cpu_milli,memory_mib,gpu,model
	for i in 1 2 3 4; do echo "big-$i,64000,262144,8,A"; done
	for i in 1 2 3 4; do echo "small-$i,32000,131072,2,B"; done
} >"$dir/nodes.csv"
{
	echo name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
	for i in $(seq 10 29); do echo "one-$i,8000,16384,1,1000,,LS"; done
	for i in $(seq 10 24); do echo "half-$i,4000,8192,1,500,,BE"; done
	for i in 1 2 3 4 5; do echo "b-$i,2000,1024,1,1000,B,LS"; done
	for i in 1 2 3; do echo "cpu-$i,6000,1024,0,0,,LS"; done
	echo "eight,32000,65536,8,1000,A,LS"
} >"$dir/pods.csv"

pack() {
	"$sim" pack "$@" "$dir/nodes.csv" "$dir/pods.csv"
}

for policy in default bestfit fgd; do
	pack --json --seed 7 --policy "$policy" --placements "$dir/out.csv" >"$dir/json"
	say $? "policy $policy runs"
	# Figures at 80, 90, ... 130 %, the numbers of pods, and what a device may hold.
	awk -F, -v at=0 -v policy="$policy" '
		FILENAME ~ /nodes/ && FNR > 1 { cap += $4 * 1000; gpus[$1] = $4; cpu[$1] = $2; model[$1] = $5 }
		FILENAME ~ /pods/ && FNR > 1 { num[$1] = $4; milli[$1] = $5; need[$1] = $2; spec[$1] = $6 }
		FILENAME ~ /out/ && FNR > 1 {
			if ($1 != FNR - 2) { print "index " $1; exit bad = 1 }
			p = $2; sub(/#.*/, "", p)
			arrived += num[p] * milli[p]
			if ($3 != "") {
				placed++
				k = $4 == "" ? 0 : split($4, d, ";")
				if (k != num[p] || $5 != (k ? milli[p] : 0)) { print "devices of " $2; exit bad = 1 }
				if (k && spec[p] != "" && spec[p] != model[$3]) { print $2 " on " $3; exit bad = 1 }
				for (i = 1; i <= k; i++) {
					used[$3, d[i]] += milli[p]
					if (d[i] >= gpus[$3] || used[$3, d[i]] > 1000) { print "device " $3 d[i]; exit bad = 1 }
				}
				cpus[$3] += need[p]
				if (cpus[$3] > cpu[$3]) { print "cpu of " $3; exit bad = 1 }
				allocated += num[p] * milli[p]
			} else
				failed++
			for (; at < 6 && arrived * 10 >= cap * (8 + at); at++)
				figure[at] = 100 - 100 * allocated / cap
		}
		END {
			if (bad) exit 1
			for (; at < 6; at++) figure[at] = 100 - 100 * allocated / cap
			printf "%s %d %d", policy, placed, failed
			for (i = 0; i < 6; i++) printf " %.6f", figure[i]
			print ""
		}' "$dir/nodes.csv" "$dir/pods.csv" "$dir/out.csv" >"$dir/mine"
	say $? "no device, cpu or model is used twice or wrongly ($policy)"
	sed 's/.*"seed":7,"policy":"\([a-z]*\)","unallocated_pct":{"80":\([0-9.]*\),"90":\([0-9.]*\),"100":\([0-9.]*\),"110":\([0-9.]*\),"120":\([0-9.]*\),"130":\([0-9.]*\)},"placed":\([0-9]*\),"failed":\([0-9]*\)}/\1 \8 \9 \2 \3 \4 \5 \6 \7/' \
		"$dir/json" | awk '{ printf "%s %d %d", $1, $2, $3; for (i = 4; i <= 9; i++) printf " %.6f", $i; print "" }' \
		>"$dir/theirs"
	cmp "$dir/mine" "$dir/theirs"
	say $? "figures follow from the placements ($policy)"
done

pack --seed 7 --placements "$dir/a.csv" >"$dir/a" &&
	{ head -n 1 "$dir/nodes.csv"; sed 1d "$dir/nodes.csv" | sort -r; } >"$dir/turned.csv" &&
	{ head -n 1 "$dir/pods.csv"; sed 1d "$dir/pods.csv" | sort -r; } >"$dir/turned-pods.csv" &&
	"$sim" pack --seed=7 --placements "$dir/b.csv" "$dir/turned.csv" "$dir/turned-pods.csv" >"$dir/b" &&
	cmp "$dir/a.csv" "$dir/b.csv"
say $? "the order of lines has no meaning"
pack --seed 8 --placements "$dir/b.csv" >/dev/null && ! cmp -s "$dir/a.csv" "$dir/b.csv"
say $? "another seed is another order"
pack --load 90 --json | grep -q '"unallocated_pct":{"80":[0-9.]*,"90":[0-9.]*},'
say $? "--load ends the list of figures"

refused() { # EXPECTED PART, then arguments
	want=$1
	shift
	"$sim" pack "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ "$status" = 1 ] && grep -qF "$want" "$dir/err" && [ ! -s "$dir/out" ]
	say $? "refused: $want"
}
printf 'sn,cpu_milli,memory_mib,gpu,model\nx,1,1,eight,A\n' >"$dir/bad.csv"
refused "bad.csv:2: gpu: expected a whole number, not 'eight'" "$dir/bad.csv" "$dir/pods.csv"
printf 'sn,cpu_milli,gpu,model\nx,1,1,A\n' >"$dir/bad.csv"
refused "bad.csv:1: expected a column named memory_mib" "$dir/bad.csv" "$dir/pods.csv"
printf 'sn,cpu_milli,memory_mib,gpu,model\nx,1,1,1,A\n\nx,1,1,1,A\n' >"$dir/bad.csv"
refused "bad.csv:4: sn: another node is named x" "$dir/bad.csv" "$dir/pods.csv"
printf 'sn,cpu_milli,memory_mib,gpu,model\nx,1,1,0,A\n' >"$dir/bad.csv"
refused "expected nodes with devices" "$dir/bad.csv" "$dir/pods.csv"
: >"$dir/bad.csv"
refused "bad.csv:1: expected a line with column names" "$dir/bad.csv" "$dir/pods.csv"
refused "No such file" "$dir/nodes.csv" "$dir/nowhere.csv"
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,2,500\n' >"$dir/bad.csv"
refused "bad.csv:2: gpu_milli: expected 1 to 1000, and 1000 where" "$dir/nodes.csv" "$dir/bad.csv"
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1\n' >"$dir/bad.csv"
refused "bad.csv:2: expected a field for num_gpu, the line has only 3" "$dir/nodes.csv" "$dir/bad.csv"
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\np,1,1,1,1000\n' >"$dir/bad.csv"
refused "two pods are named p" "$dir/nodes.csv" "$dir/bad.csv"
refused "/nowhere/out: No such file" --placements /nowhere/out "$dir/nodes.csv" "$dir/pods.csv"

for wrong in "--policy worst" "--seed -1" "--load 0" "--frobnicate" "--seed"; do
	# shellcheck disable=SC2086 # several words
	"$sim" pack "$dir/nodes.csv" "$dir/pods.csv" $wrong >/dev/null 2>"$dir/err"
	[ $? = 2 ] && [ -s "$dir/err" ]
	say $? "wrong usage exits 2: $wrong"
done
"$sim" pack "$dir/nodes.csv" >/dev/null 2>&1
[ $? = 2 ]
say $? "wrong usage exits 2: one list"
echo "1..$n"
