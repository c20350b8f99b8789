#!/bin/sh
test_description='device_cgroup, no_new_privs: what a local job can open and become'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='control groups need root'
	test_done
fi

# A device of the NVIDIA major opens with ENXIO where there is no driver, with EPERM where the control
# group forbids it.
mkdir -m 755 dev && for n in 0 1 2 3 254 255; do mknod -m 666 "dev/nvidia$n" c 195 $n || break; done 2>/dev/null
mknod -m 666 dev/other c 1 3 2>/dev/null
cat >look.py <<-\END
import errno, os, sys
for n in sys.argv[2:]:
    try:
        os.close(os.open(f"{sys.argv[1]}/{n}", os.O_RDWR))
        word = "open"
    except OSError as e:
        word = {errno.ENXIO: "open", errno.ENODEV: "open", errno.EIO: "open", errno.EPERM: "denied"}.get(e.errno, e.strerror)
    print(n, word)
END
look="/usr/bin/python3 \"$PWD/look.py\" \"$PWD/dev\" nvidia0 nvidia1 nvidia2 nvidia3 nvidia254 nvidia255 other"
opens_all="nvidia0 open nvidia1 open nvidia2 open nvidia3 open nvidia254 open nvidia255 open other open "
eval "$look" >before
if [ "$(tr '\n' ' ' <before)" != "$opens_all" ]; then
	cat before
	skip_all='devices cannot be made, or not opened, on this machine'
	test_done
fi
printf 'device_cgroup: true\nno_new_privs: true\n' >gpuqd.yaml
gpuqd --config gpuqd.yaml --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 >can.log 2>&1 &
probe=$!
wait_for 60 eval "test -S \"$gpuqd_socket\" || ! kill -0 $probe" 2>/dev/null
kill "$probe" 2>/dev/null
wait "$probe"
if [ $? = 78 ]; then
	test_expect_success 'where the kernel does not allow it, gpuqd says so and does not start' '
		says can.log "device_cgroup: .*; without the key jobs open all devices"
	'
	skip_all='this kernel or container allows no control group for devices'
	test_done
fi
chmod a+x "$TMPDIR/.." "$TMPDIR" . && chmod a+r look.py

# opens WORDS...: those minors are open in ./out, the rest of 0 to 3 is not
opens() {
	opens_want=
	for n in 0 1 2 3; do
		case " $* " in
		*" $n "*) opens_want="${opens_want}nvidia$n open " ;;
		*) opens_want="${opens_want}nvidia$n denied " ;;
		esac
	done
	[ "$(tr '\n' ' ' <out)" = "${opens_want}nvidia254 open nvidia255 open other open " ] && return 0
	cat out
	return 1
}

test_expect_success 'without the keys a job opens what its user can, and may gain rights' '
	start_gpuqd && id=$(sh_job "$look; grep NoNewPrivs /proc/self/status" --gpus=1) && exits 0 gpuq wait "$id" && gpuq logs "$id" >all &&
	grep -v NoNewPrivs all | tr "\n" " " >out && test "$(cat out)" = "$opens_all" && says all "NoNewPrivs:.0$" && stop_gpuqd
'

test_expect_success 'with them it opens its own device and no other' '
	start_gpuqd --config gpuqd.yaml && id=$(sh_job "$look" --gpus=1) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && opens 0
'

test_expect_success 'two jobs side by side, each its own' '
	one=$(sh_job "$look; sleep 300" --gpus=1) && two=$(sh_job "$look; sleep 300" --gpus=2) &&
	wait_for 60 eval "gpuq logs $two | grep other" && wait_for 60 eval "gpuq logs $one | grep other" &&
	gpuq logs "$one" >out && opens $(job "$one" pods.0.devices | tr -dc "0-9 ") &&
	gpuq logs "$two" >out && opens 1 2
'

test_expect_success 'a program beside the job opens as much as the job' '
	gpuq exec "$two" -- sh -c "$look" >out && opens 1 2 && gpuq exec "$one" -- sh -c "$look" >out && opens 0
'

test_expect_success 'so does what it leaves in a session of its own' '
	gpuq exec "$one" -- setsid -w sh -c "$look" >out && opens 0
'

test_expect_success 'a job without devices opens none' '
	id=$(sh_job "$look") && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && opens none
'

test_expect_success 'with a memory limit too' '
	id=$(sh_job "$look" --gpus=1 --mem=64M) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && opens 3
'

test_expect_success 'no device can be made anew' '
	id=$(sh_job "mknod -m 666 \"$PWD/dev/mine\" c 195 1") && exits 1 gpuq wait "$id" && test ! -e dev/mine
'

test_expect_success 'it is the same for another user, whose programs gain no rights' '
	open_to_all && gpuq cancel "$one" "$two" && job_becomes "$one" CANCELLED && job_becomes "$two" CANCELLED && mkdir -m 777 open &&
	cp "$(command -v id)" open/rootid && chown root open/rootid && chmod 4755 open/rootid &&
	id=$(cd open && printf "#!/bin/sh\n%s\n./rootid -u >as; grep NoNewPrivs /proc/self/status >nnp; sleep 300\n" "$look" |
		as nobody env HOME=/ gpuq submit --parsable --gpus=1 -) && wait_for 60 test -s open/nnp &&
	as nobody env HOME=/ gpuq logs "$id" >out && opens 0 && test "$(cat open/as)" = "$(id -u nobody)" && says open/nnp "NoNewPrivs:.1$" &&
	as nobody env HOME=/ gpuq exec "$id" -- cat /proc/self/status >status && says status "NoNewPrivs:.1$"
'

test_expect_success 'the rule of a job that runs outlives the daemon' '
	kill_gpuqd && start_gpuqd && open_to_all && as nobody env HOME=/ gpuq exec "$id" -- sh -c "$look" >out && opens 0 && gpuq cancel "$id" &&
	job_becomes "$id" CANCELLED
'

test_expect_success 'no group is left behind' '
	stop_gpuqd && start_gpuqd --config gpuqd.yaml && id=$(sh_job "echo \$GPUQ_POD_UID; cat /proc/self/cgroup" --gpus=1) &&
	exits 0 gpuq wait "$id" && gpuq logs "$id" >out && cat out && uid=$(head -n 1 out) && test -n "$uid" && says out "/gpuq/$uid$" &&
	wait_for 60 eval "! ls -d /sys/fs/cgroup/gpuq/$uid /sys/fs/cgroup/*/gpuq/$uid" && stop_gpuqd
'

test_expect_success 'without its group a job does not run' '
	GPUQ_FAILPOINT="shepherd.devices:*=eio" && export GPUQ_FAILPOINT && start_gpuqd --config gpuqd.yaml && unset GPUQ_FAILPOINT &&
	id=$(sh_job "touch ran" --gpus=1 --no-requeue) && wait_for 60 eval "gpuq status $id --json | grep -q device_cgroup" && test ! -e ran &&
	stop_gpuqd
'

test_expect_success 'the file system of jobs is counted, and a job larger than it is Unsatisfiable' '
	start_gpuqd && gpuq nodes --json >nodes.out && test "$(json resources.ephemeral-storage.total <nodes.out)" -gt 1000000 &&
	echo "{command: [\"true\"], resources: {ephemeral-storage: 1Mi}}" >s.yaml && id=$(submit s.yaml) && job_becomes "$id" COMPLETED &&
	echo "{command: [\"true\"], resources: {ephemeral-storage: 900Pi}}" >s.yaml && id=$(submit s.yaml 2>warned) && says warned "ephemeral-storage requested" &&
	wait_for 60 job_is "$id" reason Unsatisfiable && job_is "$id" reasons.0.object ephemeral-storage && stop_gpuqd
'

test_expect_success 'a wrong word is refused with its place' '
	printf "device_cgroup: maybe\n" >bad.yaml && exits 78 gpuqd --config bad.yaml --check && says err "bad.yaml:1:16: device_cgroup"
'

test_done
