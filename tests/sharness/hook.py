"""hook.py FOLDER [PORT]: receives POSTs on the loopback. Its port goes to FOLDER/port, each request
as a line of JSON to FOLDER/got: path, id (of Idempotency-Key), body. What it answers is in
FOLDER/answer, a status and perhaps a Location; 200 when there is no such file."""
import http.server
import json
import os
import sys

folder = sys.argv[1]


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(os.path.join(folder, "got"), "a") as out:
            out.write(json.dumps({"path": self.path, "id": self.headers["Idempotency-Key"],
                                  "type": self.headers["Content-Type"],
                                  "body": json.loads(body)}) + "\n")
        try:
            words = open(os.path.join(folder, "answer")).read().split()
        except FileNotFoundError:
            words = ["200"]
        self.send_response(int(words[0]))
        for place in words[1:]:
            self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Hook)
with open(os.path.join(folder, "port.new"), "w") as out:
    out.write(str(server.server_address[1]))
os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
server.serve_forever()
