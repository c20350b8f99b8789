/* shepherd.h - the small program that runs one pod and outlives the daemon
 *
 * Owns     the pod's process, everything below it, its output and its exit code.
 * Touches  processes, signals, the pod's directory. No libevent, no model.
 * Used by  main.c, when its first argument is --shepherd.
 *
 * Started by the local cluster as PROGRAM --shepherd PODDIR in a session of its own,
 * with a pipe on standard output. It takes the pod's lock, reads the state of the
 * pod, answers with one line and continues in the background:
 *   ok     it runs the pod now           busy   another shepherd has it
 *   done   nothing is left to run        any other line: what went wrong; try again
 * A pod whose start was tried before (a shepherd was killed, the machine restarted) is
 * not started again: processes left of it are killed and its end is recorded.
 *
 * The pod's directory, all but `order` and `script` optional:
 *   order   what to run (order.h)        script  a script's text, owned by its user
 *   state   how far it has come, lock    (state.h)
 *   leave   "GRACE_US": evicted            ctl     FIFO: lines "leave" (the file is there),
 *                                                "leave GRACE_US" (the disk was full), "signal N"
 *   exec.sock, attach.sock               sessions in the job (talk.h)
 * Output goes to ../../logs/POD.log, see shepherd_log.h.
 *
 * PROGRAM --shepherd --devices prints this machine's devices (devices.h); --read-output reads
 * a job's own output file as its owner (log_reader.h).
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_SHEPHERD_H

/* argv[1] is "--shepherd". Returns the exit code: 0, or 71 after a failure it told of,
 * 64 for wrong usage. */
int shepherd_main(int argc, char **argv);

#endif
