#!/bin/sh
# gpuq-sim trace on traces small enough to be worked out by hand. Every figure that is printed follows
# from the lines of --jobs-out, which awk checks here on its own.
set -u
sim=${top_builddir:-.}/gpuqd/gpuq-sim
test -x "$sim" || { echo "Bail out! $sim is not there"; exit 99; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 99
case $sim in /*) ;; *) sim=$OLDPWD/$sim ;; esac

n=0
say() { # STATUS WHAT
	n=$((n + 1))
	[ "$1" = 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}
has() { # FILE TEXT: the file has that text
	grep -qF -- "$2" "$1" || { sed 's/^/# /' "$1"; return 1; }
}

# Two nodes of 8. big (12 = 8 + 4) and four fill all 16 at 0; whole waits for big (100 s); short (20 s)
# and long (300 s) come behind it. At 50 four ends: short would be over at 70, long not before 350.
cat >small.csv <<-END
	job,submit_s,duration_s,gpus,queue
	big,0,100,12,a
	none,0,10,0,a
	four,0,50,4,a
	whole,10,100,8,a
	long,10,300,4,a
	short,10,20,4,a
END
site='--nodes 2 --gpus-per-node 8'
rows() { grep -v '^id,' "$1" | sort; }

# fifo: whole at 100, long and short beside it.
"$sim" trace $site --policy fifo --jobs-out fifo.csv --json small.csv >fifo.json
rows fifo.csv >got
cat >want <<-END
	big,1,0,0,100,n1:8;n2:4,completed
	four,1,0,0,50,n2:4,completed
	long,1,10,100,400,n2:4,completed
	short,1,10,100,120,n2:4,completed
	whole,1,10,100,200,n1:8,completed
END
diff want got | sed 's/^/# /'
cmp -s want got
say $? "fifo: nobody passes whom does not fit; 12 = 8 + 4"
# Waits 0 0 90 90 90; slowdowns 1 1 1.9 1.3 5.5; busy until 10 s: 16 of 16; mean of 8 and more (0 + 90) / 2.
has fifo.json '"jobs":5,"mean_wait_s":54.0,"p95_wait_s":90.0,"max_wait_s":90.0,"max_wait_inside_s":0.0,"mean_bsld":2.1' &&
	has fifo.json ',"utilisation":1.0,"big_job_mean_wait_s":45.0,"share_error":0.0,"jain":1.0' &&
	has fifo.json '"makespan_s":400.0,"preemptions":0'
say $? "fifo: the figures are those worked out by hand; who asks for no GPU is left out"

# easy: at 50 whole is planned for 100 on node 1 and leaves 4 on node 2, where long fits.
"$sim" trace $site --policy easy --jobs-out easy.csv --json small.csv >easy.json
rows easy.csv | grep -q '^long,1,10,50,350,n2:4,completed' && rows easy.csv | grep -q '^whole,1,10,100,200,n1:8,'
say $? "easy: who does not delay the planned start goes ahead"

"$sim" trace $site --jobs-out default.csv --json small.csv >default.json
rows default.csv | grep -q '^whole,1,10,100,200,n1:8,completed' &&
	rows default.csv | grep -q '^long,1,10,50,350,n2:4,completed'
say $? "default: the same by the daemon's own decisions"

# One node of 4 for 100 s: 200 GPU-seconds are an equal part for each queue. a asks for 364, b for 1
# and waits for all of a's where nobody asks whose turn it is, else for the one that runs.
cat >inside.csv <<-END
	job,submit_s,duration_s,procs,user,queue
	1,0,30,4,u,a
	2,1,30,4,u,a
	3,2,30,4,u,a
	4,5,1,1,v,b
	5,100,4,1,u,a
END
"$sim" trace --nodes 1 --gpus-per-node 4 --policy fifo --json inside.csv >inside.fifo
"$sim" trace --nodes 1 --gpus-per-node 4 --json inside.csv >inside.default
has inside.fifo '"max_wait_s":85.0,"max_wait_inside_s":85.0,' &&
	has inside.default '"max_wait_s":59.0,"max_wait_inside_s":25.0,'
say $? "the longest wait of those who ask for no more than an equal part stands beside that of all"

# One node of 4: a is there first with three jobs of 4; b comes at the same instant as the second end.
cat >turns.csv <<-END
	job,submit_s,duration_s,procs,user,queue
	1,0,10,4,u,a
	2,1,10,4,u,a
	3,2,10,4,u,a
	4,10,10,4,v,b
END
for p in fair-easy default; do
	"$sim" trace --nodes 1 --gpus-per-node 4 --policy $p --jobs-out $p.out turns.csv >text
	grep -q '^4,1,10,10,20,n1:4,completed' $p.out
	say $? "$p: an end and an arrival at one instant are decided together, and the queue with less comes first"
done

# Another way to the same figures: from the lines of --jobs-out and the trace alone.
awk 'BEGIN { srand(7); print "job,submit_s,duration_s,gpus,queue,user,preemptible"; t = 0
	for (i = 1; i <= 400; i++) {
		t += int(rand() * 60); g = rand() < 0.8 ? 1 + int(rand() * 4) : 8 * (1 + int(rand() * 2))
		printf "%d,%d,%d,%d,q%d,u%d,%d\n", i, t, 1 + int(rand() * rand() * 4000), g, rand() * 3, rand() * 5, rand() < 0.5
	} }' >many.csv
for p in default fifo easy fair-easy; do
	"$sim" trace --nodes 6 --gpus-per-node 8 --policy $p --estimates x3 --bound 60s --jobs-out rows.csv --json many.csv >many.json
	awk -F, -v out=many.json '
		FNR == 1 { file++; next }
		file == 1 { gpus[$1] = $4; if ($2 > last) last = $2; if (first == "" || $2 < first) first = $2; next }
		{
			m = split($6, at, ";"); sum = 0
			for (i = 1; i <= m; i++) { split(at[i], p, ":"); sum += p[2]; node[FNR, i] = p[1]
				change[++k] = sprintf("%015.6f 1 %s %d", $4, p[1], p[2])
				change[++k] = sprintf("%015.6f 0 %s %d", $5, p[1], -p[2]) }
			if (sum != gpus[$1]) bad = bad " job " $1 " got " sum
			if (m > 1 && m != int((gpus[$1] + 7) / 8)) bad = bad " job " $1 " on " m " nodes"
			if ($4 < $3) bad = bad " job " $1 " starts before it comes"
			e = $5 < last ? $5 : last
			if (e > $4) busy += sum * (e - $4)
			if ($7 != "completed") { evicted++; next }
			done[$1]++; jobs++; wait += $4 - $3; d = $5 - $4; r = $5 - $3; s = r / (d > 60 ? d : 60); bsld += s < 1 ? 1 : s
		}
		END {
			cmd = "sort"
			for (i = 1; i <= k; i++) print change[i] | "sort >changes"
			close("sort >changes")
			while ((getline line < "changes") > 0) { split(line, c, " "); use[c[3]] += c[4]; if (use[c[3]] > 8) bad = bad " " c[3] " holds " use[c[3]] }
			for (j in gpus) if (done[j] != 1) bad = bad " job " j " done " done[j] + 0 " times"
			getline json < out
			check("mean_wait_s", wait / jobs); check("mean_bsld", bsld / jobs)
			check("utilisation", busy / (48 * (last - first))); check("preemptions", evicted + 0)
			if (bad) { print "#" bad; exit 1 }
		}
		function check(key, want,   v) {
			v = json; sub(".*\"" key "\":", "", v); v += 0
			if (v - want > 1e-6 * (want + 1) || want - v > 1e-6 * (want + 1)) bad = bad " " key " is " v " and not " want
		}' many.csv rows.csv
	say $? "$p: all jobs run once, nodes hold what they have, figures follow from the lines"
done

gzip -c many.csv >many.csv.gz && "$sim" trace --nodes 6 --json many.csv.gz >gz.json && "$sim" trace --nodes 6 --json - <many.csv >plain.json && cmp -s gz.json plain.json
say $? "gzip and standard input give the same"

refused() { # WHAT LINES TEXT: a trace of these lines is refused with that
	printf "$2" >bad.csv
	"$sim" trace bad.csv 2>err
	[ $? = 1 ] && has err "bad.csv:$3"
	say $? "refused: $1"
}
refused "no gpus" 'job,submit_s,duration_s\n1,2,3\n' '1:1: no column gpus or procs'
refused "no number" 'job,submit_s,duration_s,gpus\n1,2,3,4\n2,x,3,4\n' '3:3: submit_s "x": expected seconds'
refused "half a GPU" 'job,submit_s,duration_s,gpus\n1,2,3,0.5\n' '2:7: gpus "0.5": expected a whole number'
refused "a short line" 'job,submit_s,duration_s,gpus\n1,2\n' '2:3: the line has 2 columns'
refused "nothing at all" '' '1:1: the file is empty'
refused "an open quote" 'job,submit_s,duration_s,gpus\n1,2,3,"4\n' '2:7: the quote is not closed'
"$sim" trace --nodes 1 many.csv 2>err
[ $? = 1 ] && has err 'requests 16 GPUs, and 1 nodes of 8 have 8'
say $? "refused: a job that is larger than the site"
"$sim" trace --estimates file many.csv 2>err
[ $? = 1 ] && has err 'no column estimate_s'
say $? "refused: estimates that are not there"
"$sim" trace --policy best many.csv 2>err
[ $? = 2 ] && has err 'there are default, fifo, easy and fair-easy'
say $? "refused: a policy that is none"
echo "1..$n"
