"""Martlet, and nginx, HAProxy and the bare proxy in C as plain proxies; `proxies.py` has further ones.

Each has one worker on one core, and keeps its connections to the origin alive. Only Martlet writes an access log, as it always
does. Where a peer has several settings for large bodies there is a candidate for each.
"""

import json
import os
import pathlib
import shutil

from machine import CANDIDATE_CORE, LOAD_CORE, Failed, free_port, run, tree
from tokens import AUDIENCE

HERE = pathlib.Path(__file__).resolve().parent
MANY = 1_000_000_000
NGINX_MODULES = "/usr/lib/nginx/modules"


class Candidate:
    """A running server: its name, its ports, and its process."""

    def __init__(self, name, process, ports, verifies=False):
        self.name, self.process, self.verifies = name, process, verifies
        self.pid, self.port = process.pid, ports["http"]
        self.ports = ports

    def serving_pid(self):
        """The process that holds the connections: the last child, where there is a master process."""
        return tree(self.pid)[-1]

    def url(self, path="/1k", listener="http"):
        scheme = "https" if listener in ("tls", "h2tls") else "http"
        return f"{scheme}://127.0.0.1:{self.ports[listener]}{path}"


def nginx_head(folder):
    """The common start of every nginx configuration: a foreground process with all its files in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = " ".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""
    return (
        f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log stderr warn;\n",
        f"access_log off; keepalive_requests {MANY}; keepalive_timeout 1h; {temporary} client_max_body_size 0;\n"
        "default_type text/plain;\n")


def start_origin(bench):
    """The upstream of all candidates: responses of several sizes, a sink, an echo of the identity, the issuer's keys, and
    counts of connections."""
    folder = bench.work / "origin"
    bench.origin, bench.origin_framed, bench.origin_socket = free_port(), free_port(), folder / "origin.sock"
    for name, size in {"0k": 0, "64k": 65536, "1m": 1 << 20}.items():
        (folder / "www").mkdir(parents=True, exist_ok=True)
        (folder / "www" / name).write_bytes(b"x" * size)
    shutil.copy(bench.tokens.document, folder / "www" / "keys")
    top, http = nginx_head(folder)
    # nginx reads a request's whole body before it forwards the request, here to itself and without the body: a sink.
    # A cheap API response: if it cost as much as a file's, the load's core would be saturated before the candidate's.
    document = json.dumps({"items": "x" * (1024 - len(json.dumps({"items": ""})))})
    (folder / "nginx.conf").write_text(f"""{top}
events {{ worker_connections 15000; }}
http {{
  {http} open_file_cache max=100; open_file_cache_valid 1h; sendfile on; tcp_nopush on;
  server {{
    listen 127.0.0.1:{bench.origin} backlog=4096; listen unix:{bench.origin_socket} backlog=4096;
    listen 127.0.0.1:{bench.origin_framed} http2 backlog=4096;
    root {folder}/www;
    location = /1k {{ default_type application/json; return 200 '{document}'; }}
    location = /sink {{
      client_body_buffer_size 2m; proxy_pass http://127.0.0.1:{bench.origin}/1k; proxy_method GET;
      proxy_pass_request_body off; proxy_set_header Content-Length "";
    }}
    location = /echo {{ return 200 "$http_x_auth_subject\\n"; }}
    location = /connections {{ stub_status; }}
  }}
}}
""")
    process = bench.processes.start("origin", ["nginx", "-p", folder, "-c", folder / "nginx.conf"], LOAD_CORE)
    bench.processes.await_port(process, bench.origin)
    return process


def nginx(bench, name="nginx", settings="", server="", head="", http="", upstream=None):
    """nginx as a plain proxy; `settings` go into its location, `server` into its servers."""
    key = name.replace(" ", "-").replace(",", "")
    folder = bench.work / key
    ports = {listener: free_port() for listener in ("http", "tls", "h2c", "h2tls")}
    top, common = nginx_head(folder)
    location = f'location / {{ {settings} proxy_set_header Connection ""; proxy_pass http://origin; }}'
    tls = f"ssl_certificate {bench.certificate}; ssl_certificate_key {bench.certificate_key}; ssl_protocols TLSv1.3;"
    (folder / "nginx.conf").write_text(f"""{head} {top}
events {{ worker_connections 15000; }}
http {{
  {common} {http}
  upstream origin {{ server {upstream or f"127.0.0.1:{bench.origin}"}; keepalive 8192; keepalive_requests {MANY}; keepalive_time 24h; }}
  proxy_http_version 1.1;
  server {{
    listen 127.0.0.1:{ports["http"]} backlog=4096; listen 127.0.0.1:{ports["h2c"]} http2; {server} {location}
  }}
  server {{
    listen 127.0.0.1:{ports["tls"]} ssl; listen 127.0.0.1:{ports["h2tls"]} ssl http2; {tls} {server} {location}
  }}
}}
""")
    process = bench.processes.start(key, ["nginx", "-p", folder, "-c", folder / "nginx.conf"], CANDIDATE_CORE)
    bench.processes.await_port(process, ports["http"])
    return Candidate(name, process, ports)


def nginx_unbuffered(bench):
    return nginx(bench, "nginx, unbuffered", "proxy_buffering off; proxy_request_buffering off;")


def floor(bench, name="floor", upstream=None):
    """The least that a proxy can cost: it copies bytes and reads none (`floor.c`)."""
    program, port = bench.work / "floor", free_port()
    if not program.exists():
        run(["gcc", "-O2", "-o", program, HERE / "floor.c"])
    key = name.replace(" ", "-").replace(",", "")
    process = bench.processes.start(key, [program, port, upstream or bench.origin], CANDIDATE_CORE)
    bench.processes.await_port(process, port)
    return Candidate(name, process, {"http": port})


HAPROXY = """
global
  nbthread 1
  maxconn 4000
  {globals}
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  option http-keep-alive
  http-reuse always
  {defaults}
frontend all
  bind 127.0.0.1:{port} backlog 4096
  {frontend}
  default_backend origin
backend origin
  server origin 127.0.0.1:{origin} pool-max-conn -1 pool-purge-delay 1h
"""


def haproxy(bench, name="HAProxy", settings="", frontend="", process_settings=""):
    """HAProxy as a plain proxy; `settings` go into its defaults."""
    if not shutil.which("haproxy"):
        raise Failed("haproxy is not installed")
    key = name.replace(" ", "-").replace(",", "").lower()
    port = free_port()
    path = bench.work / f"{key}.cfg"
    path.write_text(HAPROXY.format(
        port=port, origin=bench.origin, defaults=settings, frontend=frontend, globals=process_settings))
    process = bench.processes.start(key, ["haproxy", "-db", "-f", path], CANDIDATE_CORE)
    bench.processes.await_port(process, port)
    return Candidate(name, process, {"http": port})


def haproxy_spliced(bench):
    return haproxy(bench, "HAProxy, spliced", "option splice-auto")


MARTLET = """
version: 1
server:
  listen:
    - {{ address: "127.0.0.1:{port}" }}
    - {{ address: "127.0.0.1:{tls}", tls: {{ certificate_file: {certificate}, key_file: {key}, min_version: "1.3" }} }}
  workers: {workers}
  limits: {{ connections: 15000 }}
  timeouts: {{ idle: 1h }}
{server}
admin: {{ address: "127.0.0.1:{admin}", token_file: {token} }}
log: {{ format: json }}
{more}
providers:
  apple: {{ kind: apple, audiences: [{audience}], jwks_url: "http://127.0.0.1:{origin}/keys" }}
{providers}
upstreams:
  origin: {{ endpoints: ["{endpoint}"] }}
{upstreams}
routes:
{routes}
"""
ROUTES = """  - { name: all, match: { path: "/**" }, auth: { providers: [apple] }, upstream: origin }"""


def write_martlet(bench, name="Martlet", *, workers=1, server="", more="", providers="", upstreams="", routes=ROUTES, endpoint=None):
    """Writes a configuration of the gateway into a new folder: the folder, and its ports."""
    folder = bench.work / name.lower().replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    ports = {listener: free_port() for listener in ("http", "tls", "admin")}
    (folder / "config.yaml").write_text(MARTLET.format(
        port=ports["http"], tls=ports["tls"], admin=ports["admin"], certificate=bench.certificate,
        key=bench.certificate_key, token=bench.admin_token, workers=workers, server=server, audience=AUDIENCE, origin=bench.origin, more=more,
        endpoint=endpoint or f"http://127.0.0.1:{bench.origin}", providers=providers, upstreams=upstreams, routes=routes))
    return folder, {**ports, "h2c": ports["http"], "h2tls": ports["tls"]}


def martlet(bench, name="Martlet", *, binary=None, wrapper=(), core=CANDIDATE_CORE, timeout=20, **settings):
    """The gateway, or another build of it; the settings are those of ``write_martlet``, `wrapper` is a command that it runs
    under."""
    folder, ports = write_martlet(bench, name, **settings)
    process = bench.processes.start(
        folder.name, [*wrapper, binary or bench.binary, "run", "--config", folder / "config.yaml"], core, folder)
    bench.processes.await_port(process, ports["http"], timeout)
    bench.await_ready(process, ports["admin"], timeout)
    return Candidate(name, process, ports, verifies=True)
