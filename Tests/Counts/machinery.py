"""The processes of one scenario: the issuer of tokens, the session store, and the gateway under callgrind."""

import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

TIMEOUT = 60


class NotThere(Exception):
    """A process did not start, or a tool is missing."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, ready, process, log=None):
    for _ in range(TIMEOUT * 10):
        if ready():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")[-2000:] if log else ""
    raise NotThere(f"{what} does not start\n{text}")


def responds(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def post(url, members):
    request = urllib.request.Request(
        url, json.dumps(members).encode(), {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise NotThere(f"POST {url}: {error.code} {error.read()[:300]}") from None


def port_answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Issuer:
    """The demo's simulated Apple, which signs any token on request."""

    AUDIENCE = "com.example.app"

    def __init__(self, binary, folder):
        log = folder / "issuer.log"
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [binary, "demo", "--listen", "127.0.0.1:0"], cwd=folder, stdout=output, stderr=output)
        found = []

        def ready():
            found[:] = re.findall(r"Apple +(http://\S+)/auth/keys", log.read_text(encoding="utf-8", errors="replace"))
            return found and responds(found[0] + "/auth/keys")

        wait_for("the issuer", ready, self.process, log)
        self.url = found[0]

    def token(self, number):
        """A token of a separate user for each number; all tokens below 10,000 have the same length."""
        order = {"audience": self.AUDIENCE, "subject": f"001234.0123456789abcdef0123456789abcdef.{number:04}"}
        return post(self.url + "/simulator/token", order)["identity_token"]

    def close(self):
        end(self.process)


class Redis:
    """A redis-server without persistence."""

    def __init__(self, folder):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
             "--dir", str(folder), "--daemonize", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("redis-server", lambda: port_answers(self.port), self.process)

    def close(self):
        end(self.process)


class Collector:
    """A collector of traces, which takes every span."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.server.requests += 1
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.Handler)
        self.server.requests = 0
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class CountedGateway:
    """A gateway under callgrind, which counts between `begin` and `finish`, thread by thread."""

    def __init__(self, binary, folder, configuration):
        self.folder = folder
        self.port, admin = free_port(), free_port()
        (folder / "config.yaml").write_text(
            configuration.replace("{port}", str(self.port)).replace("{admin}", str(admin)), encoding="utf-8")
        log = folder / "callgrind.log"
        command = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes", "--vgdb-poll=1000000",
            f"--vgdb-prefix={folder}/vgdb", f"--callgrind-out-file={folder}/counts", binary, "run",
        ]
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=output, env=os.environ | {"SWIFT_BACKTRACE": "enable=no"},
                preexec_fn=step_back)
        self.url = f"http://127.0.0.1:{self.port}"
        wait_for("the gateway", lambda: responds(f"http://127.0.0.1:{admin}/readyz"), self.process, log)

    def control(self, *words):
        result = subprocess.run(
            ["callgrind_control", f"--vgdb-prefix={self.folder}/vgdb", *words, str(self.process.pid)],
            capture_output=True, text=True)
        if "OK" not in result.stdout:
            raise NotThere(f"callgrind_control {' '.join(words)}: {result.stdout}{result.stderr}")

    def begin(self):
        self.control("-i", "on")

    def finish(self):
        """The files with the counts since `begin`, one for each thread."""
        self.control("-d")
        self.control("-i", "off")
        return sorted(self.folder.glob("counts.1-*"))

    def close(self):
        end(self.process)


def step_back():
    """Moves the process to this one's core, where it never preempts: it runs when all others wait.

    So a whole batch has arrived when the gateway polls, and a batch always takes the same number of loop iterations.
    """
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def stay_on_one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def on_signal(*_):
    raise SystemExit(143)


def end_what_was_started_on_signals():
    signal.signal(signal.SIGTERM, on_signal)
