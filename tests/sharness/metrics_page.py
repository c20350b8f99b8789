"""metrics_page.py PORTFILE PAGE: a metrics endpoint on the loopback. /metrics answers with what
stands in the file PAGE at the moment; 503 when there is no such file. /half breaks off in the
middle, /slow never ends, /big has more than anybody reads."""
import http.server
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            page = open(sys.argv[2], "rb").read()
        except OSError:
            self.send_error(503)
            return
        half = self.path.startswith("/half")
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        if not self.path.startswith(("/slow", "/big")):
            self.send_header("Content-Length", str(len(page) * (2 if half else 1)))
        self.end_headers()
        self.wfile.write(page)
        if self.path.startswith("/slow"):
            time.sleep(60)
        try:
            for _ in range(70 if self.path.startswith("/big") else 0):
                self.wfile.write(b"# big\n" * (1 << 20 // 6))
        except OSError:
            pass

    def log_message(self, *args):
        sys.stderr.write("%s %s\n" % (self.command, self.path))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as f:
    f.write("%d\n" % server.server_port)
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
