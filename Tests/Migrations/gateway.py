"""`martlet check` and `martlet run` with the migrated configuration of a case, and the requests of its table."""

import base64
import http.client
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse

from comparing import Seen
from services import TIMEOUT, Failed, free_port

PROVIDER = re.compile(r"^  ([\w-]+):\n    kind: oidc\n", re.MULTILINE)
KEYS = re.compile(r"^ +jwks_url: .*\n", re.MULTILINE)
WEB = re.compile(r"^    web:\n", re.MULTILINE)
ENDPOINT = re.compile(r"http://127\.0\.0\.1:(\d+)")
NAMED_FILE = re.compile(r"\b(\w+_file): *([\w./-]+)")
WARNING = re.compile(r"^\S+:\d+:\d+: (?:warning|error): .*$", re.MULTILINE)


def prepare(case, folder):
    """The case's files and the secrets that its configuration names, in a folder of their own."""
    shutil.copytree(case.folder, folder)
    for key, name in NAMED_FILE.findall(case.text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(signing_key() if key == "key_file" else "a secret of this run, and long enough")
            path.chmod(0o600)


def signing_key():
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()


def check(binary, case, folder, text=None):
    """What is wrong with what `martlet check --strict` says: its warnings have to be those of the table."""
    path = folder / "checked.yaml"
    path.write_text(case.text if text is None else text)
    done = subprocess.run(
        [binary, "check", "--strict", path.name], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    said = WARNING.findall(done.stdout + done.stderr)
    wanted = [warning["text"] for warning in case.table.get("warnings", [])]
    for line in said:
        if not any(one in line for one in wanted):
            yield f"{case.name}: {line}"
    for one in wanted:
        if not any(one in line for line in said):
            yield f"{case.name}: `martlet check` does not say {one!r} any more"
    if done.returncode != 0 and not said:
        yield f"{case.name}: `martlet check` exits with {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


def localized(case, folder, server, text):
    """The same configuration with this run's keys, upstreams and issuer, which is not asked for its documents."""
    def keys(match):
        name = match.group(1)
        (folder / f"keys-{name}.json").write_text(json.dumps(server.issuers.key(name).key_set()))
        return match.group(0) + f"    jwks_file: keys-{name}.json\n"

    text = ENDPOINT.sub(lambda match: f"http://127.0.0.1:{server.port(int(match.group(1)))}", text)
    text = PROVIDER.sub(keys, KEYS.sub("", text))
    issuer = f"http://127.0.0.1:{server.port('issuer')}"
    endpoints = f"      authorization_url: {issuer}/authorize\n      token_url: {issuer}/token\n"
    return WEB.sub(lambda match: match.group(0) + endpoints, text) + "\nadmin: off\n"


class Gateway:
    """`martlet run`, and a client of it."""

    def __init__(self, binary, case, folder, server, text=None):
        self.case, self.server, self.issuers = case, server, server.issuers
        self.log, self.port, self.cookies = folder / "martlet.log", free_port(), {}
        path = folder / "run.yaml"
        path.write_text(localized(case, folder, server, case.text if text is None else text))
        with open(self.log, "wb") as output:
            command = [binary, "run", path.name, "--listen", f"127.0.0.1:{self.port}"]
            self.process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        self._wait()

    def _wait(self):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.03)
        self.stop()
        raise Failed(f"does not start: {self.logged()[-600:]}")

    def logged(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def sent(self, row):
        """What a row's request led to, also where there was no response."""
        try:
            return self.send(row)
        except (OSError, http.client.HTTPException, Failed) as error:
            return Seen(f"no response: {error!r}", ())

    def send(self, row):
        """Sends a row's request as its user."""
        table = self.case.table
        host, via, method = row.get("host", table["host"]), table["via"], row.get("method", "GET")
        fields, lands = self._credential(row, host), None
        token = self.token(row["as"]) if row.get("by") == "nothing" else ""
        path = row["path"].replace("{token}", token)
        sent = {name: value.replace("{token}", token) for name, value in row.get("send", {}).items()}
        if "return_to" in row:
            fields, lands = {}, self._sign_in(row["as"], row["return_to"])[1]
        if row.get("browser"):
            fields.update({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none", "Accept": "text/html"})
        if via == "direct":
            status, got, body = self._request(method, path, {"Host": host, **fields, **sent})
            return self._seen(status, got, body, lands)
        status, got, _ = self._request("GET", "/auth/check", {
            "Host": host, **described(via, method, host, path), **fields, **sent})
        return Seen(status, got, dict(got).get("Location"), lands=lands)

    def _seen(self, status, got, body, lands):
        named = {name.lower(): value for name, value in got}
        try:
            document = json.loads(body)
        except ValueError:
            document = {}
        upstream, path = document.get("upstream"), document.get("path")
        return Seen(status, document.get("fields", ()), named.get("location"), upstream, path, lands)

    def _request(self, method, path, fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            body = fields.pop("body", "").encode()
            for name, value in fields.items():
                connection.putheader(name, value)
            if body or method in ("POST", "PUT", "PATCH"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _credential(self, row, host):
        user = self.case.table["users"][row["as"]] if "as" in row else {}
        by = row.get("by", user.get("by", self.case.table.get("by"))) if "as" in row else "nothing"
        if by == "basic":
            pair = f"{user['name']}:{user['password']}".encode()
            return {"Authorization": "Basic " + base64.b64encode(pair).decode()}
        if by == "bearer":
            return {"Authorization": "Bearer " + self.token(row["as"])}
        if by == "session":
            if row["as"] not in self.cookies:
                self.cookies[row["as"]] = self._sign_in(row["as"], "/")[0]
            # A browser sends a cookie to the host that has set it.
            return {"Cookie": self.cookies[row["as"]]} if host == self.case.table["host"] else {}
        return {}

    def _claims(self, name):
        user = self.case.table["users"][name]
        provider = user.get("provider") or PROVIDER.search(self.case.text).group(1)
        claims = {"sub": name, **self.case.table.get("token", {}), **user.get("claims", {})}
        if "iss" not in claims:
            claims["iss"] = issuer_of(self.case.text, provider)
        return provider, claims, user.get("times", {})

    def token(self, name):
        provider, claims, times = self._claims(name)
        return self.issuers.token(provider, claims, times, self.case.table["users"][name].get("key") == "other")

    def _sign_in(self, name, return_to):
        """The code flow as a browser does it; the cookie of the session, and where the browser is at the end."""
        provider, claims, times = self._claims(name)
        host = self.case.table["host"]
        navigation = {"Host": host, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none", "Accept": "text/html"}
        query = urllib.parse.urlencode({"return_to": return_to})
        # Behind another proxy its address is trusted, and the scheme is what it says.
        if self.case.table["via"] != "direct":
            navigation.update({"X-Forwarded-Proto": "https", "X-Forwarded-Host": host})
        status, fields, body = self._request("GET", f"/auth/start/{provider}?{query}", dict(navigation))
        if status != 302:
            raise Failed(f"no sign-in begins: {status} {body[:300]}")
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(dict(fields)["Location"]).query))
        code = self.issuers.code(provider, {**claims, "aud": asked["client_id"], "nonce": asked["nonce"]}, times)
        back = urllib.parse.urlencode({"code": code, "state": asked["state"]})
        status, fields, body = self._request(
            "GET", f"/auth/callback/{provider}?{back}", {**navigation, "Cookie": cookies(fields)})
        if status != 303:
            raise Failed(f"{name} cannot sign in: {status} {body[:300]}")
        return cookies(fields), dict(fields)["Location"]


def described(via, method, host, path):
    """The fields by which nginx (original) or Traefik (forwarded) describe a request."""
    if via == "original":
        own = {"X-Original-URI": path, "X-Original-Method": method}
    else:
        own = {"X-Forwarded-Uri": path, "X-Forwarded-Method": method}
    return {**own, "X-Forwarded-Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}


def cookies(fields):
    pairs = (value.split(";")[0] for name, value in fields if name.lower() == "set-cookie")
    return "; ".join(pair for pair in pairs if pair.split("=", 1)[1])


def issuer_of(text, provider):
    """The issuer of a provider, or that of `preset: keycloak`."""
    block = re.search(rf"^  {re.escape(provider)}:\n((?:    .*\n)+)", text, re.MULTILINE).group(1)
    return re.search(r"^    (?:issuer|base_url): *(\S+)", block, re.MULTILINE).group(1)
