#!/usr/bin/python3
"""onterm.py STEPS COMMAND... - run a command on a terminal of its own

STEPS is a JSON list of [WAIT, SEND]: once WAIT has been seen in what is new, SEND is typed.
SEND may also be {"size": [COLUMNS, ROWS]}, {"signal": "TERM"} or {"hangup": true}. What came
is printed; the last line says how the command ended and whether it left the terminal as it
found it: `[exit 3, restored]`. Ends with 99 when a step's words do not come within 30 s.
"""
import fcntl, json, os, pty, select, signal, struct, sys, termios, time


def size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


steps, command = json.loads(sys.argv[1]), sys.argv[2:]
master, slave = pty.openpty()
size(master, 80, 24)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    os.closerange(3, 256)
    os.execvp(command[0], command)
out, new, ended, status = b"", b"", False, 0
deadline = time.monotonic() + 30
while True:
    if select.select([master], [], [], 0.1)[0]:
        try:
            bytes_ = os.read(master, 65536)
        except OSError:
            bytes_ = b""
        out, new = out + bytes_, new + bytes_
        if bytes_:
            continue
    if ended:
        break
    if steps and steps[0][0].encode() in new:
        send, new = steps.pop(0)[1], b""
        deadline = time.monotonic() + 30
        if isinstance(send, str):
            os.write(master, send.encode())
        elif "size" in send:
            size(master, *send["size"])
            os.kill(child, signal.SIGWINCH)
        elif "signal" in send:
            os.kill(child, getattr(signal, "SIG" + send["signal"]))
        else:
            os.kill(child, signal.SIGKILL)
    pid, status = os.waitpid(child, os.WNOHANG)
    ended = pid == child
    if not ended and time.monotonic() > deadline:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sys.stdout.write(out.decode(errors="replace") + "\n[nothing came]\n")
        sys.exit(99)
same = termios.tcgetattr(slave)[:4] == before[:4]
sys.stdout.write(out.decode(errors="replace").replace("\r", ""))
print("\n[exit %d, %s]" % (os.waitstatus_to_exitcode(status), "restored" if same else "spoiled"))
