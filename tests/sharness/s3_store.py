"""An object store for tests that speaks S3 as far as gpuqd does, on a free port of the loopback, by HTTPS.

s3_store.py DIR CERT KEY [ADDRESS]    serves until it is ended; writes its port to DIR/port

The bucket is /kept, or the host kept.localhost; key id `key`, secret `secret`, region eu-test-1. Each request must be signed with AWS Signature
Version 4, computed here from the specification, and its body must have the SHA-256 that was signed. Objects are
the files DIR/objects/NAME, with / as %2F. DIR/log: a line for each request, METHOD PATH?QUERY STATUS. A GET of an object
may be signed in its query instead, for a while.

DIR/fault, words of which each is one request's: 503 (it is refused), cut (a GET sends half of it), lost (it is done and
gets no answer), error (200 with an error inside). Without end, until the file is changed: slow (a PUT
is read a byte at a time), region (the bucket is elsewhere), skew (the server's clock is an hour ahead), and pages (a list
has 3 names)."""
import calendar, email.utils, hashlib, hmac, http.server, os, re, ssl, sys, threading, time, urllib.parse

KEY, SECRET, REGION, BUCKET = "key", "secret", "eu-test-1", "/kept"
folder, cert, key = sys.argv[1:4]
address = sys.argv[4] if len(sys.argv) > 4 else "127.0.0.1"
objects = folder + "/objects"
os.makedirs(objects, exist_ok=True)
uploads, lock = {}, threading.Lock()


def fault(*once):
    """The first of these words in the file, which takes it out, or the lasting ones."""
    with lock:
        try:
            words = open(folder + "/fault").read().split()
        except FileNotFoundError:
            return ""
        for w in once:
            if w in words:
                if w not in ("slow", "region", "skew", "pages"):
                    words.remove(w)
                    open(folder + "/fault", "w").write(" ".join(words))
                return w
    return ""


def mac(k, text):
    return hmac.new(k, text.encode(), hashlib.sha256).digest()


def signature(method, path, query, headers, names, payload, date, scope):
    pairs = sorted(p.partition("=")[::2] for p in query.split("&")) if query else []
    canonical = "\n".join([method, path, "&".join("=".join(p) for p in pairs),
                           "".join(f"{n}:{' '.join(headers[n].split())}\n" for n in names), ";".join(names), payload])
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    k = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        k = mac(k, part)
    return hmac.new(k, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
    pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_expect_100(self):
        return True  # not before the request was checked

    def send(self, status, body=b"", headers=()):
        if isinstance(body, str):
            body = body.encode()
        self.send_response_only(status)
        skew = 3600 if fault("skew") else 0
        self.send_header("Date", email.utils.formatdate(time.time() + skew, usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-amz-bucket-region", REGION)
        for h in headers:
            self.send_header(*h)
        self.end_headers()
        self.wfile.write(body)
        self.note(status)

    def note(self, what):
        with lock, open(folder + "/log", "a") as f:
            f.write(f"{self.command} {self.path} {what}\n")

    def refuse(self, status, code, more=""):
        self.close_connection = True
        self.send(status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>Refused &amp; told</Message>{more}</Error>")

    def check_presigned(self, url, query):
        """An address that is signed: it reads one object, for a while, and holds no key."""
        m = re.fullmatch(r"([^/]*)/(([0-9]{8})/([^/]*)/s3/aws4_request)", query.get("X-Amz-Credential", ""))
        date, valid = query.get("X-Amz-Date", ""), query.get("X-Amz-Expires", "")
        if self.command != "GET" or not m or m[1] != KEY or m[4] != REGION or date[:8] != m[3] or "Authorization" in self.headers:
            raise Refused(403, "AccessDenied")
        if query.get("X-Amz-Algorithm") != "AWS4-HMAC-SHA256" or query.get("X-Amz-SignedHeaders") != "host":
            raise Refused(403, "AccessDenied")
        if not re.fullmatch("[1-9][0-9]{0,5}", valid) or int(valid) > 604800:
            raise Refused(400, "AuthorizationQueryParametersError")
        begins = calendar.timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
        if not begins - 900 <= time.time() <= begins + int(valid):
            raise Refused(403, "AccessDenied", "<Expires/>")
        plain = "&".join(p for p in url.query.split("&") if not p.startswith("X-Amz-Signature="))
        if signature("GET", url.path, plain, {"host": self.headers["Host"]}, ["host"], "UNSIGNED-PAYLOAD", date, m[2]) != query["X-Amz-Signature"]:
            raise Refused(403, "SignatureDoesNotMatch")
        path = (BUCKET if self.headers["Host"].startswith("kept.") else "") + url.path
        if not path.startswith(BUCKET + "/"):
            raise Refused(404, "NoSuchBucket")
        return path[len(BUCKET):].lstrip("/"), {}, "UNSIGNED-PAYLOAD"

    def check(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, True))
        if "X-Amz-Signature" in query:
            return self.check_presigned(url, query)
        m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]*)/([0-9]{8}/([^/]*)/s3/aws4_request), ?"
                         r"SignedHeaders=([^,]*), ?Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not m:
            raise Refused(403, "AccessDenied")
        if m[1] != KEY:
            raise Refused(403, "InvalidAccessKeyId")
        if fault("region") or m[3] != REGION:
            raise Refused(400, "AuthorizationHeaderMalformed", "<Region>us-other-2</Region>")
        if fault("skew"):
            raise Refused(403, "RequestTimeTooSkewed")
        names, payload = m[4].split(";"), self.headers.get("x-amz-content-sha256", "")
        if "host" not in names or "x-amz-date" not in names or not payload:
            raise Refused(403, "AccessDenied")
        want = signature(self.command, url.path, url.query, {k.lower(): v for k, v in self.headers.items()}, names,
                         payload, self.headers["x-amz-date"], m[2])
        if want != m[5]:
            raise Refused(403, "SignatureDoesNotMatch")
        path = (BUCKET if self.headers["Host"].startswith("kept.") else "") + url.path
        if not (path + "/").startswith(BUCKET + "/"):
            raise Refused(404, "NoSuchBucket")
        if fault("503"):
            raise Refused(503, "SlowDown")
        return path[len(BUCKET):].lstrip("/"), dict(urllib.parse.parse_qsl(url.query, True)), payload

    def read_body(self, payload):
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        left, parts = int(self.headers.get("Content-Length", 0)), []
        while left:
            chunk = self.rfile.read(1 if fault("slow") else min(left, 65536))
            if fault("slow"):
                time.sleep(0.2)
            if not chunk:
                raise ConnectionError
            parts.append(chunk)
            left -= len(chunk)
        body = b"".join(parts)
        if hashlib.sha256(body).hexdigest() != payload and payload != "UNSIGNED-PAYLOAD":
            raise Refused(400, "XAmzContentSHA256Mismatch")
        return body

    def file(self, name):
        return objects + "/" + name.replace("/", "%2F")

    def store(self, name, body):
        with open(folder + "/new", "wb") as f:
            f.write(body)
        os.rename(folder + "/new", self.file(name))

    def list(self, query):
        n = 3 if fault("pages") else 1000
        names = sorted(f.replace("%2F", "/") for f in os.listdir(objects))
        names = [x for x in names if x.startswith(query["prefix"]) and x > query.get("continuation-token", "")]
        more = len(names) > n
        body = "".join(f"<Contents><Key>{x}</Key><Size>{os.path.getsize(self.file(x))}</Size></Contents>" for x in names[:n])
        body += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        body += f"<NextContinuationToken>{names[n - 1]}</NextContinuationToken>" if more else ""
        self.send(200, f'<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3">{body}</ListBucketResult>')

    def get(self, name, query):
        if not name and "uploads" in query:
            body = "".join(f"<Upload><Key>{u[0]}</Key><UploadId>{i}</UploadId></Upload>" for i, u in uploads.items())
            return self.send(200, f"<ListMultipartUploadsResult>{body}</ListMultipartUploadsResult>")
        if not name:
            return self.list(query)
        try:
            body = open(self.file(name), "rb").read()
        except FileNotFoundError:
            raise Refused(404, "NoSuchKey")
        if fault("cut"):
            self.send_response_only(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
            return self.note("cut")
        self.send(200, body)

    def put(self, name, query, body):
        etag = '"' + hashlib.md5(body).hexdigest() + '"'
        if "uploadId" in query:
            uploads[query["uploadId"]][1][int(query["partNumber"])] = (body, etag)
        else:
            self.store(name, body)
        self.answer(headers=[("ETag", etag)])

    def answer(self, body="", headers=()):
        if fault("lost"):
            self.close_connection = True
            return self.note("lost")
        self.send(200, body, headers)

    def post(self, name, query, body):
        if "uploads" in query:
            number = f"upload+{len(uploads)}/="
            uploads[number] = (name, {})
            return self.send(200, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>")
        if fault("error"):
            return self.send(200, "<Error><Code>InternalError</Code></Error>")
        if query["uploadId"] not in uploads:
            raise Refused(404, "NoSuchUpload")
        parts = uploads[query["uploadId"]][1]
        listed = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", body.decode())
        if [(int(n), e) for n, e in listed] != [(n, parts[n][1]) for n in sorted(parts)]:
            raise Refused(400, "InvalidPart")
        if any(len(parts[n][0]) < 5 << 20 for n in sorted(parts)[:-1]):
            raise Refused(400, "EntityTooSmall")
        self.store(name, b"".join(parts[n][0] for n in sorted(parts)))
        del uploads[query["uploadId"]]
        self.answer("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def delete(self, name, query):
        if "uploadId" in query:
            uploads.pop(query["uploadId"], None)
        elif os.path.exists(self.file(name)):
            os.remove(self.file(name))
        self.send(204)

    def handle_it(self):
        try:
            name, query, payload = self.check()
            body = self.read_body(payload)
            if self.command in ("PUT", "POST"):
                getattr(self, self.command.lower())(name, query, body)
            else:
                getattr(self, self.command.lower())(name, query)
        except Refused as e:
            self.refuse(*e.args)
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True
            self.note("broken")

    do_GET = do_PUT = do_POST = do_DELETE = handle_it


server = http.server.ThreadingHTTPServer((address, 0), Handler)
server.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(folder + "/port.new", "w") as f:
    f.write(str(server.server_port))
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
