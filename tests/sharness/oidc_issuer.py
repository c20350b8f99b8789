"""An issuer of web tokens for tests: HTTPS on a free port of the loopback.

oidc_issuer.py serve DIR CERT KEY    serves until it is ended; writes its port to DIR/port
oidc_issuer.py keys FILE.key...      prints the set of these keys; their ids are the names of the files
oidc_issuer.py token FILE.key [CLAIM=JSON...]
                                     prints a token; =JSON absent removes the claim

DIR/mode: ok, huge, slow (5 s), away (503), odd (of another issuer); DIR/keys: what is served as keys;
DIR/log: a line for each request.

It has the device flow, RFC 8628: DIR/device, if it is there, is the whole answer to a request for a code (its first
line the status); DIR/answer is the state of each login: pending, another error, away (503), or the id
token itself. DIR/forms has a line for each form that was sent."""
import base64, http.server, json, os, ssl, subprocess, sys, time


def encode(b):
    return base64.urlsafe_b64encode(b).rstrip(b"=").decode()


def openssl(*args, data=None):
    return subprocess.run(("openssl",) + args, input=data, capture_output=True, check=True).stdout


def keys(files):
    out = []
    for f in files:
        n = bytes.fromhex(openssl("rsa", "-in", f, "-noout", "-modulus").decode().strip().split("=")[1])
        out.append({"kty": "RSA", "use": "sig", "kid": os.path.basename(f)[:-4], "n": encode(n), "e": "AQAB"})
    print(json.dumps({"keys": out}))


def token(file, claims):
    now = int(time.time())
    c = {"iss": os.environ["ISSUER"], "aud": "gpuq", "iat": now, "exp": now + 300, "sub": "daemon"}
    for pair in claims:
        name, value = pair.split("=", 1)
        c[name] = json.loads(value) if value else c.pop(name)
        if not value:
            del c[name]
    for t in ("iat", "exp", "nbf"):
        if isinstance(c.get(t), str):
            c[t] = now + int(c[t])
    head = {"alg": "RS256", "typ": "JWT", "kid": os.path.basename(file)[:-4]}
    text = ".".join(encode(json.dumps(x).encode()) for x in (head, c))
    print(text + "." + encode(openssl("dgst", "-sha256", "-sign", file, data=text.encode())))


def serve(folder, cert, key):
    def read(name):
        with open(f"{folder}/{name}") as f:
            return f.read().strip()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            mode, url = read("mode"), f"https://127.0.0.1:{server.server_port}"
            with open(f"{folder}/log", "a") as f:
                f.write(f"{mode} {self.path}\n")
            body = read("keys")
            if self.path.endswith("openid-configuration"):
                body = {"issuer": url + ("/" if mode == "odd" else ""), "jwks_uri": url + "/keys"}
                if mode != "no-device":
                    body.update(device_authorization_endpoint=url + "/device", token_endpoint=url + "/token")
                if os.path.exists(f"{folder}/secret-in-form"):
                    body["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
                body = json.dumps(body)
            elif mode == "huge":
                body += " " * 300000
            elif mode == "slow":
                time.sleep(5)
            self.send_response(503 if mode == "away" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "public, max-age=1")
            self.end_headers()
            self.wfile.write(body.encode())

        def reply(self, status, body):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self):
            url = f"https://127.0.0.1:{server.server_port}"
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with open(f"{folder}/forms", "a") as f:
                f.write(f"{self.path} {form} {self.headers.get('Authorization', '-')}\n")
            if self.path == "/device":
                if os.path.exists(f"{folder}/device"):
                    status, _, body = read("device").partition("\n")
                    return self.reply(int(status), body)
                return self.reply(200, json.dumps({
                    "device_code": "device-secret", "user_code": "WDJB-MJHT", "verification_uri": url + "/go",
                    "verification_uri_complete": url + "/go?code=WDJB-MJHT", "expires_in": 300, "interval": 1}))
            state = read("answer")
            if state == "pending":
                return self.reply(400, json.dumps({"error": "authorization_pending"}))
            if state == "away":
                return self.reply(503, "")
            if "." not in state:
                return self.reply(400, json.dumps({"error": state}))
            self.reply(200, json.dumps({"access_token": "x", "token_type": "Bearer", "id_token": state}))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(f"{folder}/port.new", "w") as f:
        f.write(str(server.server_port))
    os.rename(f"{folder}/port.new", f"{folder}/port")
    server.serve_forever()


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
elif sys.argv[1] == "keys":
    keys(sys.argv[2:])
else:
    token(sys.argv[2], sys.argv[3:])
