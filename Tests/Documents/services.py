"""The services of a page's gateway: the simulators of `martlet demo`, and an upstream that accepts upgrades."""

import base64
import dataclasses
import hashlib
import http.server
import json
import re
import socket
import subprocess
import threading
import time
import urllib.request

TIMEOUT = 60


class Unavailable(Exception):
    """A requirement of the pages does not start on this machine."""


@dataclasses.dataclass
class Ports:
    """The addresses of this run."""

    gateway: int
    admin: int
    upstream: int
    apple: str
    wechat: str
    others: dict = dataclasses.field(default_factory=dict)

    def local(self, shown):
        """The port of this run for one that a page shows; always the same."""
        known = {8080: self.gateway, 9901: self.admin, 9000: self.upstream}
        if shown in known or not shown:
            return known.get(shown, shown)
        return self.others.setdefault(shown, free_port())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def wait_until(what, is_so, process, log):
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        if is_so():
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise Unavailable(f"{what} does not start: {log.read_text(errors='replace')[-500:]}")


def make_pair(folder):
    """A certificate and its key, as texts."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True)
    return {"certificate": (folder / "cert.pem").read_text(), "key": (folder / "key.pem").read_text()}


def finish(process):
    process.terminate()
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def post(url, members):
    request = urllib.request.Request(url, json.dumps(members).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        return json.load(response)


class Simulators:
    """The simulated Apple and WeChat of a separate demo."""

    def __init__(self, binary, folder):
        log = folder / "demo.log"
        with open(log, "wb") as output:
            self.process = subprocess.Popen([binary, "demo", "--listen", "127.0.0.1:0"], cwd=folder, stdout=output, stderr=output)
        wait_until("martlet demo", lambda: "curl " in log.read_text(errors="replace"), self.process, log)
        said = log.read_text()
        self.apple = re.search(r"(http://\S+)/auth/keys", said).group(1)
        self.wechat = re.search(r"(http://\S+)/simulator/calls", said).group(1)

    def identity_token(self, subject="ada"):
        members = {"audience": "com.example.app", "subject": subject, "email": "ada@example.com"}
        return post(f"{self.apple}/simulator/token", members)["identity_token"]

    def code(self):
        return post(f"{self.wechat}/simulator/code", {"app_id": "wx0000000000000001", "person": "Ada"})["code"]

    def close(self):
        finish(self.process)


class Upstream(http.server.BaseHTTPRequestHandler):
    """Responds with 200, and with 101 to WebSocket upgrades."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Upgrade", "").lower() == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            self.close_connection = True
        else:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    do_POST = do_GET

    def log_message(self, *_):
        pass


def start_upstream():
    """:returns: the port of an upstream that runs as long as this process."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
