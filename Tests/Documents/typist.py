"""Types the commands of one page, in a separate folder, and checks the results."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import tempfile

import configurations
import rules
import services

ROOT = pathlib.Path(__file__).resolve().parents[2]
# curl prints the status on standard error, which no pipe on a page reads.
CURL = '#!/bin/sh\nexec {curl} -sS --max-time 20 -w "%{{stderr}}\\nstatus %{{http_code}}\\n" "$@"\n'
USERS_CONFIGURATION = """version: 1
accounts: { url: "sqlite:martlet.db" }
providers:
  password: { kind: password, users: accounts }
  apple: { kind: apple, audiences: [com.example.app] }
upstreams: { api: { endpoints: ["builtin:echo"] } }
routes: [{ name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }]
"""


class PageError(Exception):
    """The content of a page is wrong."""


class Typist:
    """One page: its folder, the gateway that runs there, and the tokens that it returned."""

    def __init__(self, page, binary, simulators, pair, folder, upstream):
        self.page, self.binary, self.simulators, self.pair, self.folder = page, binary, simulators, pair, folder
        self.ports = services.Ports(
            services.free_port(), services.free_port(), upstream, simulators.apple, simulators.wechat)
        self.gateway = None
        self.others = []
        self.tokens = {}
        self.make_folder()

    @property
    def name(self):
        return self.page.rsplit("/", 1)[-1]

    def make_folder(self):
        tools = self.folder / "bin"
        tools.mkdir(parents=True)
        (tools / "martlet").symlink_to(self.binary)
        (tools / "curl").write_text(CURL.format(curl=shutil.which("curl")))
        (tools / "curl").chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{tools}:{os.environ['PATH']}", "MARTLET_EXECUTABLE": str(self.binary), "SWIFT_BACKTRACE": "enable=no"}
        (self.folder / "token.txt").write_text(self.simulators.identity_token() + "\n")
        (self.folder / "file").write_text(rules.PASSWORD + " two\n")
        (self.folder / "caller.json").write_text(rules.CALLER)
        shutil.copy(self.binary, self.folder / "martlet.new")

    def configure(self, text):
        """Writes the files that the page's commands need."""
        whole = configurations.complete(text)
        configurations.make_files(whole, self.folder, self.pair, "the-phone-app-s-secret")
        (self.folder / "config.yaml").write_text(configurations.localized(whole, self.ports))

    def prepare(self, found):
        """The configuration that the page's commands refer to, with the users that it assumes."""
        setting = rules.SETTINGS.get(self.name)
        shown = [block.text for block in found if block.language == "yaml"]
        if setting == "simulator":
            self.configure(next(text for text in shown if "base_url:" in text))
        elif setting:
            self.configure(USERS_CONFIGURATION if setting == "users" else (ROOT / setting).read_text())
        else:
            self.configure(shown[0])
        if user := rules.USERS.get(self.name):
            self.run(f"martlet user add {user}", given=rules.TYPED_TWICE)

    def run(self, text, given="", folder=None):
        return subprocess.run(
            ["bash", "-c", text], cwd=folder or self.folder, env=self.environment, input=given, capture_output=True, text=True, timeout=120)

    def type(self, command, rule):
        """Types a command.

        :raises PageError: when the result is not the one in the rule."""
        text = self.substituted(command.text)
        if rule.excuse:
            return look_up(text)
        if rule.serves:
            return self.serve(text) if text.startswith("martlet run") else self.serve_beside(text)
        if (rule.status or rule.asks) and not self.gateway:
            self.serve("martlet run")
        done = self.run(text, rule.given, tempfile.mkdtemp(dir=self.folder) if rule.is_apart else None)
        said = done.stdout + done.stderr
        if done.returncode != rule.code:
            raise PageError(f"ended with {done.returncode}, not {rule.code}: {said.strip()[-500:]}")
        if rule.status and f"status {rule.status}" not in done.stderr:
            raise PageError(f"did not get {rule.status}: {said.strip()[-500:]}")
        if rule.prints not in said:
            raise PageError(f"did not print {rule.prints!r}: {said.strip()[-500:]}")
        self.record(done.stdout)

    def substituted(self, text):
        """The command with the ports of this run, and with values in place of the page's dots."""
        text = configurations.local_addresses(text, self.ports)
        if "…" in text and self.gateway:
            text = text.replace("kill -HUP …", f"kill -HUP {self.gateway.pid}")
        for prefix in ("mat_", "mrt_", "mno_"):
            if prefix + "…" in text:
                text = text.replace(prefix + "…", self.token(prefix))
        for name in ("TOKEN", "CODE"):
            if f'"{name}"' in text:
                text = text.replace(f'"{name}"', f'"{self.tokens[name]}"')
        if "0xyxyegn7qDwQ9uAqQPnucDyLWeLY2Ck" in text:
            text = text.replace("0xyxyegn7qDwQ9uAqQPnucDyLWeLY2Ck", self.simulators.code())
        if text.startswith("make "):
            text = text.replace("token.txt", str(self.folder / "token.txt")).replace("make ", f"make -C {ROOT} ", 1)
            text = text.replace("50000", "300").replace("--duration 60", "--duration 2")
        text = text.replace("/usr/local/bin", str(self.folder / "bin"))
        if "…" in text:
            raise PageError("has dots without a known value")
        return text

    def token(self, prefix):
        """A token of the last login; of a login with Apple where the page has none."""
        if prefix not in self.tokens:
            url = f"http://127.0.0.1:{self.ports.gateway}/auth/login/apple"
            self.record(json.dumps(services.post(url, {"identity_token": self.simulators.identity_token()})))
        return self.tokens[prefix]

    def record(self, said):
        self.tokens |= {found[:4]: found for found in re.findall(r"\b(?:mat|mrt|mno)_[\w-]{40,}", said)}
        # A code of the simulated WeChat, not the code of an error.
        self.tokens |= {"CODE": found for found in re.findall(r'"code":"([\w-]+)","app_id"', said)}
        for name, member in (("TOKEN", "identity_token"), ("CODE", "authorization_code")):
            self.tokens |= {name: found for found in re.findall(rf'"{member}": *"([\w.-]+)"', said)}

    def serve(self, text):
        """Starts a gateway, or starts it again, and waits until it is ready."""
        if self.gateway:
            services.finish(self.gateway)
        self.gateway, log = self.start(text)
        services.wait_until(text, self.is_ready, self.gateway, log)

    def serve_beside(self, text):
        """Starts another server, and waits until it listens."""
        process, log = self.start(text)
        self.others.append(process)
        port = int(re.search(r"127\.0\.0\.1:(\d+)", text).group(1))
        services.wait_until(text, lambda: services.accepts(port), process, log)

    def start(self, text):
        log = self.folder / "served.log"
        with open(log, "ab") as output:
            process = subprocess.Popen(
                shlex.split(text), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                executable=self.binary)
        return process, log

    def is_ready(self):
        return self.run(f"martlet health --address 127.0.0.1:{self.ports.admin}").returncode == 0

    def send(self, block):
        """Sends a request that a page shows as text.

        :raises PageError: when the response is neither 200 nor 101."""
        if not self.gateway:
            self.serve("martlet run")
        request = self.substituted(block.text).replace("\n", "\r\n") + "\r\n"
        with socket.create_connection(("127.0.0.1", self.ports.gateway), timeout=20) as connection:
            connection.sendall(request.encode())
            response = connection.recv(4096)
        if response[9:12] not in (b"200", b"101"):
            raise PageError(f"got {response[:200]!r}")

    def query(self, block):
        """Runs SQL on the page's account store.

        :raises PageError: when SQLite rejects it."""
        if not self.gateway:
            self.serve("martlet run")
        with contextlib.closing(sqlite3.connect(self.folder / "martlet.db")) as connection:
            try:
                connection.executescript("PRAGMA foreign_keys = ON;\n" + block.text)
            except sqlite3.Error as error:
                raise PageError(str(error)) from None

    def close(self):
        for process in filter(None, [self.gateway, *self.others]):
            services.finish(process)
        self.gateway, self.others = None, []


def look_up(text):
    """Checks a command that is not typed: that the target of make exists, and its script's options.

    :raises PageError: when they do not."""
    if not text.startswith("make "):
        return
    done = subprocess.run(["bash", "-c", text.replace("make ", "make -n ", 1)], capture_output=True, text=True)
    if done.returncode != 0:
        raise PageError(f"make does not know it: {done.stderr.strip()}")
    words = shlex.split(done.stdout.strip().splitlines()[-1].split("make[")[0] or "true")
    script = next((ROOT / word for word in words if word.startswith("Tests/")), None)
    options = {word for word in words if word.startswith("--")}
    if script and options:
        known = subprocess.run([script, "--help"], capture_output=True, text=True).stdout
        if missing := sorted(option for option in options if option not in known):
            raise PageError(f"{script.name} has no {', '.join(missing)}")


def check(block, binary, pair, folder):
    """Completes a configuration and has the gateway check it.

    :raises PageError: when it reports an error or a warning."""
    whole = configurations.complete(block.text)
    configurations.make_files(whole, folder, pair, "0123456789abcdef0123456789abcdef")
    (folder / "config.yaml").write_text(whole)
    done = subprocess.run([binary, "check", "--config", "config.yaml"], cwd=folder, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    if done.returncode != 0 or "warning:" in said:
        raise PageError(f"is not accepted as it is: {said.strip()[-800:]}")
