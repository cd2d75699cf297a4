"""What a run needs: the upstream, redis-server, a certificate, an account, and a gateway below the injector."""

import base64
import collections
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import threading
import time

from client import WEBSOCKET

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# A fixed place: the names of folders are names of calls.
FOLDER = ROOT / ".torture"
USER, PASSWORD = "alice", "correct horse battery"
IDENTITY_HEADERS = ("x-user-id", "x-auth-subject", "x-auth-provider", "x-auth-email")
BLOB = bytes(range(256)) * 1200
SLOW = 0.25
EVENTS = b"".join(b"data: %d\n\n" % number for number in range(3))
CONFIGURATION = """version: 1
server:
  listen:
    - address: "127.0.0.1:{public}"
    - {{ address: "127.0.0.1:{tls}", tls: {{ certificate_file: cert.pem, key_file: key.pem }} }}
  workers: 1
  timeouts: {{ drain: 2s, request_head: 2s, body_idle: 2s, tls_handshake: 2s }}
admin: {{ address: "127.0.0.1:{admin}", socket: "unix:martlet.sock" }}
log: {{ level: info, format: json, access: {{ file: access.log }} }}
store: {{ url: "redis://localhost:{redis}/0" }}
accounts: {{ url: "sqlite:accounts.db" }}
audit: {{ file: audit.log, key_file: audit.pem }}
webhooks:
  - name: hook
    url: "http://127.0.0.1:{upstream}/public/hook"
    events: ["account.*", "session.revoked", "login.succeeded"]
    secret_file: hook.key
# One hash costs little here: how long it takes is not tested.
providers: {{ password: {{ kind: password, users: accounts, hash: {{ memory: 8KiB, iterations: 1 }} }} }}
upstreams:
  up:
    endpoints: ["http://localhost:{upstream}"]
    timeouts: {{ connect: 1s, response_head: 2s, idle: 2s }}
routes:
  - name: public
    match: {{ path: "/public/**" }}
    auth: none
    headers: {{ set: {{ X-Generation: {{ value: "{generation}" }} }} }}
    upstream: up
  - name: api
    match: {{ path: "/v1/**" }}
    auth: {{ providers: [password] }}
    headers: {{ set: {{ X-User-Id: {{ attribute: subject }} }} }}
    upstream: up
"""


class Failed(Exception):
    """The run cannot be made on this machine."""


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed(f"{command[0]} failed: {done.stdout[-400:]} {done.stderr[-800:]}")
    return done.stdout


def free_port(taken=set()):
    """A port below those that the system gives to connections: the same one is used by gateway after gateway."""
    while True:
        port = random.randrange(18000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in taken:
            taken.add(port)
            return port


@dataclasses.dataclass
class Seen:
    """One request as the upstream got it."""

    step: str
    path: str
    identities: list
    generation: str
    body: bytes


class Upstream(socketserver.ThreadingTCPServer):
    """Records every request, and responds by its path."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), Connection)
        self.seen = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 60}, daemon=True).start()

    def handle_error(self, request, client_address):
        """A connection that a gateway has closed early is nothing to report."""


class Connection(socketserver.StreamRequestHandler):
    """One connection of a gateway."""

    disable_nagle_algorithm = True

    def handle(self):
        while line := self.rfile.readline():
            method, path, _ = line.decode("latin-1").split(" ", 2)
            fields = []
            while (line := self.rfile.readline().decode("latin-1").strip()):
                name, _, value = line.partition(":")
                fields.append((name.lower(), value.strip()))
            headers = dict(fields)
            body = self.read_body(headers)
            seen = Seen(
                headers.get("x-step", ""), path, [f"{n}={v}" for n, v in fields if n in IDENTITY_HEADERS],
                headers.get("x-generation", ""), body)
            self.server.seen.append(seen)
            if not self.respond(path, headers, seen):
                return

    def read_body(self, headers):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(headers.get("content-length", 0)))

    def respond(self, path, headers, seen):
        """:returns: whether the connection goes on."""
        kind = path.split("?")[0].split("/")[2]
        if kind == "socket":
            digest = hashlib.sha1((headers.get("sec-websocket-key", "") + WEBSOCKET).encode()).digest()
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n")
            # A client's frame has a mask, of zeros here, and a server's has none; any other frame ends the connection.
            while (head := self.rfile.read(2)) and head[0] == 0x81:
                self.rfile.read(4)
                self.wfile.write(bytes([0x81, head[1] & 0x7F]) + self.rfile.read(head[1] & 0x7F))
            return False
        if kind == "events":
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(3):
                time.sleep(0.005)
                data = b"data: %d\n\n" % number
                self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return True
        if kind == "slow":
            time.sleep(SLOW)
        body = BLOB if kind == "blob" else seen.body or b"small"
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nX-Generation-Seen: " + seen.generation.encode()
            + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True


def die_with_parent():
    """A process of a run ends with it, whatever ends the run."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


class Stage:
    """What the runs of one worker share: ports, the upstream, redis-server, and the account."""

    def __init__(self, binary, injector):
        self.binary, self.injector = binary, injector
        for left in FOLDER.glob("stage*"):
            # Of a run that was killed.
            if not pathlib.Path(f"/proc/{left.name[5:]}").exists():
                shutil.rmtree(left, ignore_errors=True)
        self.folder = FOLDER / f"stage{os.getpid()}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.template = self.folder / "template"
        self.template.mkdir(parents=True)
        self.ports = {name: free_port() for name in ("public", "tls", "admin", "upstream", "redis")}
        self.upstream = Upstream(self.ports["upstream"])
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(self.ports["redis"]), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", self.template / "key.pem",
             "-out", self.template / "cert.pem"])
        (self.template / "audit.pem").write_text(run([binary, "keygen", "audit"]))
        (self.template / "hook.key").write_text(run(["openssl", "rand", "-base64", "32"]))
        for name in ("key.pem", "audit.pem", "hook.key"):
            (self.template / name).chmod(0o600)
        self.write_configuration(self.template, 1)
        run([self.binary, "user", "add", USER, "--config", self.template / "config.yaml"], input=PASSWORD + "\n")
        self.certificate = self.template / "cert.pem"

    def write_configuration(self, folder, generation):
        text = CONFIGURATION.format(generation=generation, **self.ports)
        (folder / "config.new").write_text(text)
        (folder / "config.new").rename(folder / "config.yaml")

    def close(self):
        self.redis.kill()
        self.redis.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Gateway:
    """A gateway below the injector, in a folder of its own."""

    def __init__(self, stage, target=()):
        """`target` is what fails: the injector's arguments."""
        self.stage, self.folder = stage, stage.folder / "run"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(stage.template, self.folder)
        self.report = stage.folder / "report"
        self.report.unlink(missing_ok=True)
        self.output = stage.folder / "output.log"
        names = ",".join(f"{port}={name}" for name, port in stage.ports.items())
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [str(word) for word in (stage.injector, self.report, names, *target, "--", stage.binary, "run")],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=os.environ | {"SWIFT_BACKTRACE": "enable=no", "NO_COLOR": "1"}, preexec_fn=die_with_parent)

    def lines(self):
        """The lines of the injector's report."""
        try:
            return self.report.read_text().splitlines()
        except OSError:
            return []

    @property
    def pid(self):
        return next((int(line.split()[1]) for line in self.lines() if line.startswith("pid ")), 0)

    def injected(self):
        """When the call failed for the first and the last time, and whether anything was done to it; None before that."""
        found = [line.split() for line in self.lines() if line.startswith("injected ")]
        return (float(found[0][1]), float(found[-1][1]), found[0][2]) if found else None

    def calls(self):
        """How often each call was made: {(thread, call, object): count}; after the end."""
        found = [line.split("\t")[1:] for line in self.lines() if line.startswith("call\t")]
        return {(thread, call, about): int(count) for thread, call, about, count in found}

    def signal(self, number):
        pid = self.pid
        if pid and self.process.poll() is None:
            os.kill(pid, number)

    def log(self):
        return self.output.read_text(errors="replace")

    def access_lines(self):
        try:
            return (self.folder / "access.log").read_text(errors="replace").splitlines()
        except OSError:
            return []

    def stored_events(self):
        """The data of events that are not delivered yet; after the end."""
        try:
            with contextlib.closing(sqlite3.connect(self.folder / "accounts.db")) as store:
                return [row[0] for row in store.execute("SELECT data FROM events")]
        except sqlite3.Error as error:
            return [f"the account store cannot be read: {error}"]

    def descriptors(self):
        """What the gateway has open, by kind; connections to the upstream are those of its pool."""
        counts, pid = collections.Counter(), self.pid
        sockets = socket_names(pid, self.stage.ports)
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            return counts
        for number in numbers:
            try:
                name = os.readlink(f"/proc/{pid}/fd/{number}")
            except OSError:
                continue
            if name.startswith("socket:["):
                name = sockets.get(name[8:-1], "socket")
            counts[name.split(":[")[0] if name.startswith("pipe") else name.rpartition("/")[2]] += 1
        return counts

    def processor_time(self):
        """What all threads have used, in seconds."""
        used = 0
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            try:
                used += int(path.read_text().split()[0])
            except OSError:
                continue
        return used / 1e9

    def wait(self, seconds):
        """:returns: the exit status; None where the process did not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self):
        if self.process.poll() is None:
            # The gateway ends with its injector, but not before a call of its own that waits for the disk.
            try:
                handle = os.pidfd_open(self.pid)
            except OSError:
                handle = None
            self.process.kill()
            self.process.wait()
            if handle is not None:
                select.select([handle], [], [], 30)
                os.close(handle)


def socket_names(pid, ports):
    """What the TCP sockets of a process are, by their inodes."""
    names, found = {port: name for name, port in ports.items()}, {}
    try:
        table = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return found
    for line in table:
        fields = line.split()
        here, there = (int(field.rpartition(":")[2], 16) for field in fields[1:3])
        if here in names:
            found[fields[9]] = names[here] + ("_listener" if there == 0 else "_client")
        elif there in names:
            found[fields[9]] = names[there]
    return found
