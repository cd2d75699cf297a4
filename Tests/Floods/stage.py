"""The processes of a run: the simulators, redis-server, and gateways with an account store that has users."""

import base64
import json
import os
import pathlib
import resource
import secrets
import shutil
import ssl
import subprocess
import sys
import time

from signing import Issuer, run
from machine import Failed, free_port, memory

HERE = pathlib.Path(__file__).resolve().parent
PASSWORD = "correct horse battery staple"
# A valid Basic credential is cached for ten seconds, so several users are needed to have one verified each time.
BASIC_USERS = [f"basic{number}" for number in range(24)]
USERS = ["login", "login@example.com", "flood", *BASIC_USERS]
COOLDOWN = 0.1
FILES = ("cert.pem", "key.pem", "apple.p8", "accounts.key", "hook.secret", "partner.secret", "other.secret")
CONFIGURATION = """version: 1
server:
  listen:
    - address: "127.0.0.1:{port}"
    - {{ address: "127.0.0.1:{tls}", tls: {{ certificate_file: cert.pem, key_file: key.pem }} }}
  trusted_proxies: [127.0.0.1/32]
admin: {{ address: "127.0.0.1:{admin}" }}
log: {{ level: error, format: json }}
store: {{ url: "{store}" }}
accounts: {{ url: "sqlite:accounts.db", key_file: accounts.key }}
webhooks:
  - {{ name: mailer, url: "http://127.0.0.1:{upstream}/hook", events: ["mail.*"], secret_file: hook.secret }}
sessions: {{ dpop: optional, max_per_subject: 50 }}
browser: {{ origin: "https://a.test", native_redirects: ["com.example.app:/cb"], register: true }}
jwks: {{ unknown_kid_cooldown: {cooldown}ms }}
providers:
  apple:
    kind: apple
    audiences: [com.example.app]
    jwks_url: "http://127.0.0.1:{keys}/auth/keys"
    base_url: "http://127.0.0.1:{upstream}"
    team_id: SIMTEAM001
    key_id: SIMKEY0001
    private_key_file: apple.p8
    notifications: true
    web: {{ client_id: com.example.web, response_mode: form_post }}
  wechat:
    kind: wechat
    base_url: "http://127.0.0.1:{wechat}"
    apps: {{ ios: {{ variant: mobile, app_id: wx0000000000000001, app_secret: 0123456789abcdef0123456789abcdef }} }}
  password: {{ kind: password, users: accounts, register: {{ enabled: true }}, reset: true }}
  keys: {{ kind: api_key }}
  foreign: {{ kind: http, url: "http://127.0.0.1:{upstream}/verify", accepts: [{{ bearer_prefix: "pt_" }}] }}
  partners:
    kind: signed
    keys:
      partner: {{ algorithm: hmac-sha256, secret_file: partner.secret, subject: partner, nonce: required }}
      other: {{ algorithm: hmac-sha256, secret_file: other.secret, subject: other, nonce: required }}
upstreams:
  up: {{ endpoints: ["http://127.0.0.1:{upstream}"] }}
  busy: {{ endpoints: ["http://127.0.0.1:{filled}"], breaker: {{ max_requests: 128 }} }}
  filled: {{ endpoints: ["http://127.0.0.1:{filled}"] }}
  full:
    endpoints: ["http://127.0.0.1:{filled}"]
    breaker: {{ max_connections: 96, max_pending: 128, queue_timeout: 5s }}
routes:
  - {{ name: busy, match: {{ path: "/busy/**" }}, auth: none, upstream: busy }}
  - {{ name: full, match: {{ path: "/full/**" }}, auth: none, upstream: full }}
  - {{ name: narrow, match: {{ path: "/narrow/**" }}, auth: none, upstream: filled, limits: {{ concurrency: 128 }} }}
  - {{ name: public, match: {{ path: "/public/**" }}, auth: none, upstream: up }}
  - {{ name: api, match: {{ path: "/v1/**" }}, auth: {{ providers: [apple, wechat, password, keys, foreign, partners] }}, upstream: up }}
"""


def wait_for(what, is_ready, process, log=None, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if is_ready():
            return
        time.sleep(0.02)
    said = pathlib.Path(log).read_text(errors="replace")[-1000:] if log else ""
    raise Failed(f"{what} does not start {said}")


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Stage:
    """What all floods of a run share: a folder, a certificate, the issuer, the simulators, the accounts, and maybe Redis."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.processes = []
        self.made_gateways, self.gateways = 0, []
        self.issuer = Issuer(folder)
        self.make_certificate()
        self.make_secrets()
        # An upstream that a flood fills is a process of its own: its load is not to be taken for the gateway's.
        self.ports = self.start_simulators("ports") | {"filled": self.start_simulators("filled")["upstream"]}
        self.redis = None
        self.accounts = self.make_accounts()

    def start(self, command, log):
        with open(self.folder / log, "ab") as output:
            process = subprocess.Popen(
                [str(word) for word in command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=os.environ | {"SWIFT_BACKTRACE": "enable=no"}, preexec_fn=raise_file_limit)
        self.processes.append(process)
        return process

    def stop(self, process):
        self.processes.remove(process)
        end(process)

    def close(self):
        for process in reversed(self.processes):
            end(process)
        self.processes = []

    def make_certificate(self):
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-keyout", self.folder / "key.pem", "-out", self.folder / "cert.pem"])

    def make_secrets(self):
        """Keys of accounts, Apple and a partner, and the key of a client that proves possession."""
        run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.folder / "apple.p8"])
        run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.folder / "prover.pem"])
        run(["openssl", "pkey", "-in", self.folder / "prover.pem", "-pubout", "-outform", "DER", "-out", self.folder / "prover.pub"])
        random = base64.b64encode(secrets.token_bytes(32)).decode()
        for name, content in (("partner.secret", random), ("other.secret", random), ("hook.secret", f"whsec_{random}")):
            (self.folder / name).write_text(content)
        (self.folder / "accounts.key").write_text(run([self.binary, "keygen", "accounts"]))
        for name in FILES:
            (self.folder / name).chmod(0o600)

    def start_simulators(self, name):
        """:returns: the ports of their services, by their names."""
        process = self.start([sys.executable, "-B", HERE / "simulators.py", self.folder, name], f"{name}.log")
        ports = self.folder / f"{name}.json"
        wait_for("the simulators", ports.exists, process, self.folder / f"{name}.log")
        return json.loads(ports.read_text())

    def start_redis(self):
        socket = self.folder / "redis.sock"
        process = self.start(
            ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--databases", "1000"],
            "redis.log")
        wait_for("redis-server", socket.exists, process, self.folder / "redis.log")
        self.redis = socket

    def make_accounts(self):
        """Hashes the passwords once; every gateway starts with a copy."""
        folder = self.folder / "accounts"
        folder.mkdir()
        self.write_configuration(folder, "memory:", [1, 2, 3])
        for user in USERS:
            verified = ["--verified"] if "@" in user else []
            run([self.binary, "user", "add", user, *verified, "--config", folder / "config.yaml"], input=PASSWORD + "\n")
        self.key = run([self.binary, "key", "create", "--subject", "machine", "--config", folder / "config.yaml"]).split()[0]
        return folder

    def write_configuration(self, folder, store, ports):
        for name in FILES:
            shutil.copy(self.folder / name, folder)
        (folder / "config.yaml").write_text(CONFIGURATION.format(
            port=ports[0], tls=ports[1], admin=ports[2], store=store, cooldown=int(COOLDOWN * 1000), **self.ports))

    def gateway(self, store):
        """A fresh gateway; `store` is `memory` or `redis`."""
        self.made_gateways += 1
        folder = self.folder / f"gateway{self.made_gateways}"
        shutil.copytree(self.accounts, folder)
        if store == "redis" and not self.redis:
            self.start_redis()
        url = f"redis+unix://{self.redis}?db={self.made_gateways}" if store == "redis" else "memory:"
        self.gateways.append(Gateway(self, folder, url))
        return self.gateways[-1]

    def close_gateways(self):
        for gateway in list(self.gateways):
            gateway.close()


class Gateway:
    """One running gateway."""

    def __init__(self, stage, folder, store):
        self.stage, self.folder = stage, folder
        self.port, self.tls, self.admin = free_port(), free_port(), free_port()
        stage.write_configuration(folder, store, [self.port, self.tls, self.admin])
        self.process = stage.start([stage.binary, "run", "--config", folder / "config.yaml"], folder / "log")
        wait_for("the gateway", self.is_ready, self.process, folder / "log")

    def is_ready(self):
        health = subprocess.run(
            [self.stage.binary, "health", "--address", f"127.0.0.1:{self.admin}"], capture_output=True)
        return health.returncode == 0

    def size(self):
        """Resident bytes and open files, or zeros when it has exited."""
        try:
            return memory(self.process.pid, "Rss"), len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except (OSError, Failed):
            return 0, 0

    def close(self):
        self.stage.gateways.remove(self)
        self.stage.stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)


def raise_file_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def client_hello():
    """The first flight of a TLS handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()
