"""The originals themselves, where they can run here: Envoy from .proxies, and nginx with Debian's modules.

What a row says of the original is compared with what it does, so that a table is more than the reading of documents.
"""

import json
import pathlib
import re
import shutil
import subprocess

from comparing import OTHERS
from gateway import ENDPOINT, Gateway
from services import free_port

UPSTREAM = re.compile(r"^  (\w+): \{ endpoints: \[\"http://127\.0\.0\.1:(\d+)\"\] \}$", re.MULTILINE)
MANAGER = """static_resources:
  listeners:
    - name: public
      address: { socket_address: { address: 0.0.0.0, port_value: 8080 } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": {types}.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: public
                route_config:
                  virtual_hosts:
                    - { name: all, domains: ["*"], routes: [{ match: { prefix: / }, route: { cluster: %s } }] }
""".replace("{types}", "type.googleapis.com/envoy.extensions.filters.network")
CLUSTER = """    - name: %s
      type: STATIC
      load_assignment:
        cluster_name: %s
        endpoints:
          - lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: %d } } } }]
"""


class Original(Gateway):
    """An original product, which gets the requests of the table as the gateway does."""

    def __init__(self, case, folder, server, command):
        self.case, self.server, self.issuers, self.port, self.cookies = case, server, server.issuers, free_port(), {}
        self.log = folder / "original.log"
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(command(self), cwd=folder, stdout=output, stderr=output)
        self._wait()


def command_of(case, folder, root):
    """What starts the case's original, or None where that cannot run here."""
    envoy = root / ".proxies/envoy"
    if case.name.startswith("envoy/") and envoy.is_file():
        options = ["--use-dynamic-base-id", "--concurrency", "1", "-l", "error"]
        return lambda running: [envoy, "-c", envoy_file(running, folder), *options]
    if case.name == "nginx/basic" and shutil.which("nginx"):
        return lambda running: ["nginx", "-p", folder, "-e", folder / "nginx.log", "-c", nginx_file(running, folder)]
    return None


def envoy_file(running, folder):
    text, upstreams = (folder / "envoy.yaml").read_text(), dict(UPSTREAM.findall(running.case.text))
    if not text.startswith("static_resources:"):
        filters = "".join(" " * 16 + line for line in text.splitlines(keepends=True) if not line.startswith("#"))
        text = MANAGER % next(iter(upstreams)) + filters
    text = text.replace("address: 0.0.0.0, port_value: 8080", f"address: 127.0.0.1, port_value: {running.port}")
    text = "\n".join(with_local_keys(text.splitlines(), running, folder)) + "\n  clusters:\n"
    for name, port in upstreams.items():
        text += CLUSTER % (name, name, running.server.port(int(port)))
    path = folder / "envoy-run.yaml"
    path.write_text(text)
    return path


def with_local_keys(lines, running, folder):
    """The lines with keys from files instead of those of the issuer."""
    provider, inside = None, None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if inside is not None and indent > inside:
            continue
        inside = None
        if found := re.fullmatch(r" +(\w+):", line):
            provider = found.group(1) if found.group(1) != "remote_jwks" else provider
        if re.match(r" +(remote|local)_jwks:", line):
            path = folder / f"envoy-{provider}.json"
            path.write_text(json.dumps(running.issuers.key(provider).key_set()))
            yield " " * indent + f"local_jwks: {{ filename: {path} }}"
            inside = indent
        else:
            yield line


def nginx_file(running, folder):
    text = (folder / "nginx.conf").read_text().replace("127.0.0.1:8080", f"127.0.0.1:{running.port}")
    text = ENDPOINT.sub(lambda match: f"http://127.0.0.1:{running.server.port(int(match.group(1)))}", text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    own = "access_log off; " + " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    path = folder / "nginx-run.conf"
    text = text.replace("http {", f"http {{ {own}", 1)
    path.write_text(f"daemon off; master_process off; pid {folder}/nginx.pid;\n{text}")
    return path


def expected_of(row):
    """What the table says of the original."""
    original = row.get("original", {})
    wanted = {name: value for name, value in row.items() if name not in ("original", "differs")}
    if original.get("status", row["status"]) != row["status"]:
        for name in ("headers", *OTHERS):
            wanted.pop(name, None)
    headers = {**wanted.get("headers", {}), **original.get("headers", {})}
    return {**wanted, **original, "headers": headers}


def rows_of(case, folder, server, root):
    command = command_of(case, pathlib.Path(folder), root)
    if not command:
        return []
    running = Original(case, folder, server, command)
    try:
        return [(expected_of(row), running.sent(row)) for row in case.rows]
    finally:
        running.stop()
