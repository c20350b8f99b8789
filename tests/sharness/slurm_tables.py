"""The tables of gpuq-slurm(7) and what the commands say of their options are the same, and every
option of Slurm's own commands (25.05) is in them.

usage: slurm_tables.py PAGE; the commands are in the path."""
import os
import re
import subprocess
import sys

SLURM = {
    "sbatch": """account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment
        constraint consolidate-segments container container-id contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task
        deadline delay-boot dependency distribution error exclude exclusive export export-file extra
        extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task
        gres gres-flags help hint hold ignore-pbs immediate input job-name kill-on-invalid-dep licenses
        mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-kill
        no-requeue nodefile nodelist nodes ntasks oom-kill-step ntasks-per-core ntasks-per-gpu ntasks-per-node
        ntasks-per-socket open-mode output overcommit oversubscribe parsable partition power prefer priority
        profile propagate qos quiet reboot requeue reservation resv-ports segment signal sockets-per-node
        spread-job spread-segments stepmgr switches test-only thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid usage
        use-min-nodes verbose version wait wait-all-nodes wckey wrap""",
    "salloc": """account bell begin chdir clusters comment constraint cpus-per-gpu cpus-per-task dependency
        exclude exclusive gpus gpus-per-node gres help hold immediate job-name kill-command mem no-bell
        no-shell nodelist nodes ntasks ntasks-per-node partition qos quiet reservation signal time time-min
        uid gid usage verbose version wait wait-all-nodes wckey x11""",
    "srun": """accel-bind account bcast chdir compress cpu-bind cpus-per-task dependency disable-status epilog
        error exact exclude exclusive export external gpus gpus-per-task gres het-group hint immediate input
        job-name jobid kill-on-bad-exit label mem mpi msg-timeout multi-prog network no-allocate nodelist nodes
        ntasks ntasks-per-node output overcommit overlap partition preserve-env prolog pty quiet
        quit-on-interrupt relative resv-ports send-libs slurmd-debug stepmgr task-epilog task-prolog threads
        time treewidth unbuffered usage verbose version wait whole x11""",
    "squeue": """account all array array-unique clusters expand-patterns federation format Format help hide
        iterate job jobs json licenses local long me name noconvert nodelist noheader notme only-job-state
        partition priority qos reservation sibling sort start states steps usage user users verbose version
        yaml""",
    "scancel": """account admin-comment batch cron ctld full help hurry interactive jobname me name nodelist
        partition qos quiet reservation sibling signal state usage user verbose version wckey clusters""",
    "sinfo": """all clusters dead exact federation format Format future help hide iterate json list-reasons
        local long noconvert Node nodes noheader partition reservation responding sort states summarize usage
        verbose version yaml""",
    "sacct": """accounts allclusters allocations allusers array associations batch-script brief clusters
        completion delimiter duplicates endtime env-vars expand-patterns federation file flags format gid group
        help helpformat jobs json local long name ncpus nnodes noconvert nodelist noheader parsable parsable2
        partition qos reason starttime state timelimit-max timelimit-min truncate uid units usage user verbose
        version whole-hetjob wckeys yaml""",
    "scontrol": """all clusters details federation future help hide json local oneliner quiet sibling uid
        usage verbose version yaml""",
    "sshare": """accounts all clusters format help json long noheader parsable parsable2 partition usage
        users Users verbose version""",
    "sprio": """clusters federation format help jobs local long noheader norm partition sibling sort user
        verbose version weights""",
    "sacctmgr": """help immediate noheader oneliner parsable parsable2 quiet readonly verbose version
        associations""",
}
STEP = {"GPUQ_JOB_ID": "1"}
bad = 0


def complain(text):
    global bad
    bad = 1
    print(text)


def of_help(command, env):
    """{--name: text}, those of jobs apart."""
    text = subprocess.run([command, "--help"], capture_output=True, text=True, env={**os.environ, **env}).stdout
    own, job, rows, name = {}, {}, None, None
    rows = own
    for line in text.split("\n"):
        m = re.match(r"  (?:-(.),| {3}) --([A-Za-z0-9-]+)\S*\s*(.*)$", line)
        if line.startswith("Options of the job"):
            rows = job
        elif m:
            name = m[2]
            rows[name] = (m[1] or "", m[3])
        elif name and line.startswith(" " * 30):
            rows[name] = (rows[name][0], line.strip())
        else:
            name = None
    return own, job


def of_page(page):
    """{section: {--name: text}}; "" is what stands before the first."""
    sections, here = {"": {}}, {}
    here, lines = sections[""], open(page).read().split("\n")
    for i, line in enumerate(lines):
        m = re.match(r"\.It Fl (?:(.) , )?-(\S+)", line)
        if line.startswith(".Ss "):
            here = sections.setdefault(line[4:], {})
        elif m:
            text = lines[i + 1].replace("\\&", "")
            here[m[2]] = (m[1] or "", text[:1].lower() + text[1:].removesuffix("."))
    return sections


def compare(section, rows, page):
    common = page[""]
    for name, (letter, text) in rows.items():
        said = page[section].get(name) or common.get(name)
        said = said and (said[0], said[1])
        if not said or said[0] != letter or said[1] != text[:1].lower() + text[1:]:
            complain(f"{section} -{letter} --{name}: --help says '{text}', the page {said}")
    for name in page[section]:
        if name not in rows:
            complain(f"{section} --{name} is in the page, not in --help")


page = of_page(sys.argv[1])
for command, names in SLURM.items():
    own, job = of_help(command, {})
    compare(command, own, page)
    for name in names.split():
        if name not in own and name not in job:
            complain(f"{command} --{name} is an option of Slurm's, and not answered")
compare("srun in a job", of_help("srun", STEP)[0], page)
job = of_help("sbatch", {})[1]
compare("Options of jobs", {n: r for n, r in job.items() if r[1].startswith(("ignored:", "refused:"))}, page)

# What scontrol refuses says what to do instead, as the page has it.
text = open(sys.argv[1]).read()
for verb, instead in re.findall(r"\.It Ic (\S+)\nRefused: (.*)\.\n", text):
    r = subprocess.run(["scontrol", verb], capture_output=True, text=True)
    if r.returncode != 1 or instead not in r.stderr:
        complain(f"scontrol {verb}: exit {r.returncode}, {r.stderr!r}; the page says {instead!r}")
sys.exit(bad)
