"""scopes.py METHODS.C PORT DIR: every method of the table with a token of each scope, DIR/SCOPE, over tls://.

A call is refused as denied unless the token has the scope of its row. What each scope is for is written down here a
second time: a row that is added, or changed, has to be added here as well."""
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../unit/cli")]
sys.dont_write_bytecode = True
from fake import Reader, pack  # noqa: E402
import hostile  # noqa: E402

ROWS = {
    "read": """audit.list event.list event.watch history.list diag.get job.get job.list job.logs job.wait job.why node.list
        plan.get pool.list prio.list prio.weights queue.list report.get reservation.list reservation.report scenario.export site.get
        shares.list status.get token.list usage.list""",
    "submit": "code.put job.submit",
    "control": "job.cancel job.hold job.release job.requeue job.update token.create token.revoke",
    "session": "job.attach job.exec job.forward",
    "manage": "queue.grant site.apply",
    "operate": """backup.get backup.list backup.verify backup.write cluster.rights node.drain node.resume recover.finish
        recover.get""",
    "": "auth.begin auth.finish",
}
IS = {method: scope for scope, methods in ROWS.items() for method in methods.split()}


def table(path):
    with open(path) as f:
        rows = re.findall(r'^\t\{ "([a-z.]+)",\s+RPC_ROLE_\w+, (?:SCOPE_)?(\w+),', f.read(), re.M)
    return {method: "" if scope == "0" else scope.lower() for method, scope in rows}


def greet(scope):
    with open(f"{sys.argv[3]}/{scope}") as f:
        token = f.read().strip()
    s = hostile.connect_tls(int(sys.argv[2]))
    reader = Reader(s)
    s.sendall(pack([0, 0, "hello", [{"proto": [1, 0], "client": "scopes", "auth": {"token": token}}]]))
    hello = reader.value()
    if hello[2] is not None or hello[3]["scopes"] != [scope]:
        raise SystemExit(f"{scope}: {hello}")
    return s, reader


def call(s, reader, n, method):
    """The name of its error, or "ok" at its first item or reply."""
    s.sendall(pack([0, n, method, [{}]]) + pack([2, "$/cancel", [n]]))
    while True:
        m = reader.value()
        if m[0] == 1 and m[1] == n:
            return m[2]["name"] if m[2] else "ok"


def main():
    rows = table(sys.argv[1])
    wrong = [f"{m}: {rows.get(m)} in the table, {IS.get(m)} here" for m in sorted({*rows, *IS}) if rows.get(m) != IS.get(m)]
    calls = 0
    for scope in filter(None, ROWS):
        s, reader = greet(scope)
        for n, (method, needs) in enumerate(rows.items(), 1):
            got = call(s, reader, n, method)
            calls += 1
            if (got == "denied") != (needs not in ("", scope)):
                wrong.append(f"{method} with scope {scope}: {got}")
    print(f"{calls} calls")
    return "\n".join(wrong) or None


sys.exit(main())
