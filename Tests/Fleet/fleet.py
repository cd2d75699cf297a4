"""A whole fleet on this machine: Redis, PostgreSQL, the simulated Apple, two gateways, and nginx before and behind them."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import counting
import postgres
import redis_nodes
from processes import Process, Resources, Unavailable, free_port, wait_until

PASSWORD = "correct horse battery staple"
USERS = [f"user{number}" for number in range(20)]
ACCESS_TTL, CACHE_TTL = 60.0, 5.0
# One loop for each gateway: then which copies of a session exist can be told from outside.
CONFIGURATION = """version: 1
server:
  listen: [{{ address: "127.0.0.1:{port}" }}]
  workers: 1
  trusted_proxies: [127.0.0.1/32]
admin: {{ address: "127.0.0.1:{admin}" }}
log: {{ level: info, format: json }}
store: {{ url: "{store}"{seal} }}
accounts: {{ url: "{accounts}" }}
sessions: {{ access_ttl: {access_ttl}s, cache_ttl: {cache_ttl}s, max_per_subject: {cap} }}
providers:
  apple: {{ kind: apple, audiences: [com.example.app], jwks_url: "http://127.0.0.1:{apple}/auth/keys" }}
  password: {{ kind: password, users: accounts, hash: {{ memory: 8KiB, iterations: 1 }} }}
upstreams: {{ up: {{ endpoints: ["http://127.0.0.1:{upstream}"] }} }}
routes:
  - {{ name: api, match: {{ path: "/v1/**" }}, auth: {{ providers: [apple, password] }}, upstream: up }}
"""
NGINX = """{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {folder}/nginx-body; proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-fastcgi; uwsgi_temp_path {folder}/nginx-uwsgi; scgi_temp_path {folder}/nginx-scgi;
  keepalive_timeout 1h; keepalive_requests 100000000;
  upstream gateways {{ {servers} keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{front} backlog=4096;
    location / {{
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_next_upstream off;
      proxy_connect_timeout 5s; proxy_read_timeout 15s;
      add_header X-Instance $upstream_addr always;
    }}
  }}
  server {{ listen 127.0.0.1:{upstream} backlog=4096; location / {{ return 200 "ok\\n"; }} }}
}}
"""


class Instance:
    """One gateway."""

    def __init__(self, number, fleet):
        self.number, self.fleet = number, fleet
        self.name = f"martlet{number}"
        self.port, self.admin = free_port(), free_port()
        self.config = fleet.folder / f"{self.name}.yaml"
        self.process = None

    def configure(self):
        fleet = self.fleet
        self.config.write_text(CONFIGURATION.format(
            port=self.port, admin=self.admin, store=fleet.store.url, accounts=fleet.accounts.url, apple=fleet.apple,
            upstream=fleet.upstream, access_ttl=int(ACCESS_TTL), cache_ttl=int(fleet.cache_ttl), cap=fleet.cap,
            seal=f", seal: {{ key_files: [{', '.join(fleet.keys)}] }}" if fleet.keys else ""))

    def start(self):
        self.process = Process(self.name, [self.fleet.binary, "run", "--config", self.config], self.fleet.folder)
        self.process.await_port(self.port)

    def reload(self):
        """Writes and loads the configuration; returns when it is in force."""
        before = self.reloads()
        self.configure()
        self.process.child.send_signal(signal.SIGHUP)
        wait_until(f"{self.name} has reloaded", lambda: self.reloads() > before)

    def reloads(self):
        found = counting.read_metrics(self.metrics())
        return next((value for (name, labels), value in found.items()
                     if name == "martlet_server_reloads_total" and "success" in labels), 0)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def resources(self):
        fleet = self.fleet
        ports = dict.fromkeys((node.port for node in fleet.store.nodes), "redis")
        ports |= dict.fromkeys(getattr(fleet.store, "ports", ()), "sentinel")
        ports |= dict.fromkeys((server.port for server in fleet.accounts.servers), "postgresql")
        ports |= {fleet.upstream: "upstream", fleet.apple: "apple"}
        return Resources(self.process.pid, ports, (self.port, self.admin))

    def ready(self):
        """The state of /readyz and what is not as it should be."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=1) as response:
                document = json.load(response)
        except urllib.error.HTTPError as error:
            document = json.loads(error.read() or b"{}")
        except (OSError, ValueError):
            return "silent"
        wrong = [f"{check.get('name')} {check.get('state')}" for check in document.get("checks", [])
                 if check.get("state") not in ("up", "ok", "connected", "ready")]
        return " ".join([document.get("status", "?"), *wrong])

    def metrics(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=2) as response:
                return response.read().decode()
        except OSError:
            return ""


class Fleet:
    """All processes, in the order in which they start."""

    def __init__(self, binary, topology, folder, tell=print, is_sealed=False, cache_ttl=CACHE_TTL, cap=10_000):
        """:param is_sealed: whether the store has a seal; :param cap: sessions of a subject."""
        self.cache_ttl, self.cap, self.keys = cache_ttl, cap, []
        self.is_sealed = is_sealed
        self.binary, self.folder, self.topology = os.path.abspath(binary), folder, topology
        self.store, self.accounts, self.instances, self.nginx, self.simulator = None, None, [], None, None
        # PostgreSQL runs as another user in this folder.
        folder.chmod(0o755)
        self.apple, self.front, self.upstream = free_port(), free_port(), free_port()
        self.tell = tell

    def start(self):
        self.tell(f"starting Redis as {self.topology}")
        self.store = redis_nodes.TOPOLOGIES[self.topology](self.folder)
        self.tell("starting PostgreSQL, a primary and a replica")
        self.accounts = postgres.Pair(self.folder)
        self.tell("starting the simulated Apple, two gateways and nginx")
        self.simulator = Process(
            "apple", [self.binary, "simulate", "apple", "--listen", f"127.0.0.1:{self.apple}"], self.folder)
        self.simulator.await_port(self.apple)
        if self.is_sealed:
            self.keys = [self.make_key()]
        self.instances = [Instance(number, self) for number in (1, 2)]
        for instance in self.instances:
            instance.configure()
        self.add_users()
        self.write_nginx()
        self.nginx = Process("nginx", ["nginx", "-c", self.folder / "nginx.conf", "-p", self.folder], self.folder)
        self.nginx.await_port(self.front)
        for instance in self.instances:
            instance.start()
            wait_until(f"{instance.name} is ready", lambda: instance.ready().startswith(("ready", "degraded")))

    def make_key(self):
        """A new key of the seal. :returns: the name of its file."""
        name = f"store{len(list(self.folder.glob('store*.key')))}.key"
        result = subprocess.run([self.binary, "keygen", "store", "--out", name], capture_output=True, text=True, cwd=self.folder)
        if result.returncode:
            raise Unavailable(f"martlet keygen store: {result.stderr[-500:]}")
        return name

    def add_users(self):
        for user in USERS:
            command = [self.binary, "user", "add", user, "--config", str(self.instances[0].config)]
            result = subprocess.run(command, input=PASSWORD + "\n", capture_output=True, text=True, cwd=self.folder)
            if result.returncode:
                raise Unavailable(f"martlet user add: {result.stderr[-500:]}")

    def write_nginx(self, drained=None):
        servers = " ".join(
            f"server {instance.address} max_fails=0{' down' if instance is drained else ''};" for instance in self.instances)
        (self.folder / "nginx.conf").write_text(NGINX.format(
            user="user root;" if os.geteuid() == 0 else "", folder=self.folder, servers=servers, front=self.front,
            upstream=self.upstream))

    def drain(self, instance):
        """Takes a gateway out of nginx, or all in with None."""
        self.write_nginx(instance)
        self.nginx.child.send_signal(signal.SIGHUP)
