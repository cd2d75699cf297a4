"""The gateway in front of its built-in echo, with providers of kind `oidc` for one issuer."""

import json
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

from accounts import API
from issuer import ROOT, free_port

TIMEOUT = 20
# How long the gateway uses what it has got from the issuer, in seconds.
KEYS, UNKNOWN_KEY, INTROSPECTION = 5, 1, 2


class Response:
    def __init__(self, status, fields, body):
        self.status, self.fields = status, fields
        try:
            self.document = json.loads(body)
        except ValueError:
            self.document = {}

    @property
    def code(self):
        return self.document.get("code")

    def header(self, name):
        """A header that the upstream got."""
        return self.document.get("headers", {}).get(name)


class Gateway:
    """`martlet run` with a configuration in a folder."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.port, self.admin = free_port(), free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self, issuer, clients):
        (self.folder / "martlet.yaml").write_text(self._configuration(issuer, clients))
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen([self.binary, "run", "--config", self.folder / "martlet.yaml"], stdout=output, stderr=output)
        deadline = time.monotonic() + TIMEOUT
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the gateway does not start:\n{self.logged()[-3000:]}")
            time.sleep(0.05)

    def _is_ready(self):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5).close()
            return True
        except OSError:
            return False

    @property
    def log(self):
        return self.folder / "martlet.log"

    def reason(self, response):
        """The reason in the log, which is written a moment after the response."""
        wanted = response.fields["X-Request-Id"]
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            for line in self.logged().splitlines():
                if not line.startswith("{"):  # a warning about the configuration
                    continue
                entry = json.loads(line)
                if entry.get("request_id") == wanted and "reason" in entry:
                    return entry["reason"]
            time.sleep(0.02)
        raise AssertionError(f"no request {wanted} in the log")

    def logged(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        if self.process:
            self.process.terminate()
            code, self.process = self.process.wait(TIMEOUT), None
            assert code == 0, f"the gateway ended with {code}:\n{self.logged()[-3000:]}"

    def check_online(self):
        """What `martlet check --online` prints, and its exit code."""
        done = subprocess.run(
            [self.binary, "check", "--online", "--config", self.folder / "martlet.yaml"], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def introspections(self):
        """How often the issuer was asked about a token."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=TIMEOUT) as response:
            lines = response.read().decode().splitlines()
        return sum(float(one.split()[-1]) for one in lines if one.startswith("martlet_provider_introspections_total"))

    def get(self, path, token):
        return self._send(urllib.request.Request(self.origin + path, headers={"Authorization": f"Bearer {token}"}))

    def post(self, path, members):
        fields = {"Content-Type": "application/json"}
        return self._send(urllib.request.Request(self.origin + path, json.dumps(members).encode(), fields))

    def _send(self, request):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return Response(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Response(error.code, error.headers, error.read())

    def _configuration(self, issuer, clients):
        def secret(name, text):
            path = self.folder / f"{name}.secret"
            path.write_text(text)
            path.chmod(0o600)
            return path

        def provider(name, **keys):
            return {"kind": "oidc", "issuer": issuer.url, "timeout": "2s", **keys}

        def opaque(password):
            return {
                "audiences": [API], "accepts": [{"bearer_prefix": "opq_"}], "subject_claim": "username",
                "introspection": {
                    "url": f"{issuer.url}/introspect/", "client_id": "gateway", "client_secret_file": str(password),
                    "cache": f"{INTROSPECTION}s"}}

        def web(name, **keys):
            path = secret(name, clients[name]["secret"])
            return {
                "audiences": [name],
                "web": {"client_id": name, "client_secret_file": str(path), "scope": ["openid", "profile", "email"], **keys}}

        providers = {
            "ids": {"audiences": ["app"], "login": {"client_ids": ["app"]}}, "access": {"audiences": [API], "access_tokens": True},
            "opaque": opaque(secret("gateway", clients["gateway"]["secret"])),
            "refused": opaque(secret("refused", "not the secret")),
            "website": web("website", auth_method="client_secret_post"), "profile": web("profile", userinfo=True)}
        claims = {"X-Name": "preferred_username", "X-Email": "email", "X-Acr": "acr"}
        headers = {"X-Subject": {"attribute": "subject"}} | {name: {"claim": claim} for name, claim in claims.items()}
        document = {
            "version": 1, "server": {"listen": [{"address": f"127.0.0.1:{self.port}"}], "timeouts": {"drain": "1s"}},
            "admin": {"address": f"127.0.0.1:{self.admin}"}, "sessions": {}, "browser": {"origin": self.origin},
            "jwks": {"ttl": f"{KEYS}s", "unknown_kid_cooldown": f"{UNKNOWN_KEY}s", "negative_ttl": "1s"},
            "providers": {name: provider(name, **keys) for name, keys in providers.items()},
            "upstreams": {"echo": {"endpoints": ["builtin:echo"]}},
            "routes": [
                {"name": name, "match": {"path": f"/{name}/**"}, "upstream": "echo", "headers": {"set": headers},
                 "auth": {"providers": [name], "credentials": [kind for kind in ("session", "direct") if kind == "session" or "web" not in keys]}}
                for name, keys in providers.items()]}
        document["routes"].insert(0, {
            "name": "readers", "match": {"path": "/access/read/**"}, "upstream": "echo",
            "auth": {"providers": ["access"], "credentials": ["direct"]}, "authorize": [{"claim": "scope", "contains": "read"}]})
        # Every JSON document is one of YAML.
        return json.dumps(document, indent=2)
