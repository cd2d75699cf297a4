"""Generated configurations, each with a gateway that runs with it."""

import json
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import fixtures
import wire

LIMIT_KEYS = ["address", "host", "route", "\"header:X-Device\"", "subject", "provider", "[subject, route]", "[address, \"header:X-Device\"]"]
CONDITIONS = [
    "{ claim: plan, in: [free, paid] }", "{ claim: role, equals: admin }", "{ claim: role, exists: false }", "{ claim: level, gt: 2 }",
    "{ claim: teams, contains: a }", "{ claim: role, matches: \"adm.*\", or_absent: true }", "{ claim: plan, equals: free, not: true }",
    "{ any: [{ claim: role, equals: admin }, { claim: scope, contains: read }] }", "{ acr: mfa }", "{ max_age: 1s }", "{ max_age: 1h }"]
TARGETS = ['"/new$path?$query"', '"https://www.example.com$path"', '"/login?to=$path&at=$host"', '"https://$host/x"']
REWRITES = ["{ strip_prefix: %s }", "{ add_prefix: /api }", "{ strip_prefix: %s, add_prefix: /api/v2 }", "{ host: backend.internal }",
            "{ regex: \"/(.*)/(.*)\", to: \"/$2/$1\" }", "{ regex: \"/[^/]*/(.*)\", to: \"/find?name=$1\" }", "{ regex: \"(.*)x\", to: \"$1\" }"]
HEADERS = ["X-Auth-Subject: { attribute: subject }", "X-Auth-Provider: { attribute: provider }", "X-Kind: { value: api }",
           "X-Role: { claim: role, default: none }", "X-Teams: { claim: teams, join: \",\" }", "X-Claims: { claim: teams, encode: json }",
           "X-Auth-Email: { attribute: email }", "X-Name: { attribute: provider_subject, encode: base64url }"]


class Route:
    """A route, and the requests that match it."""

    def __init__(self, chance, number, limits):
        self.name = f"r{number}"
        self.prefix = "/" + chance.choice("abcd")
        self.lines, self.match = {}, {}
        self.rate = []
        self.kind = "upstream"
        self.make_match(chance)
        self.make_auth(chance)
        self.make_rest(chance, limits)

    def make_match(self, chance):
        if chance.random() < 0.1:
            self.match["path_regex"] = json.dumps(self.prefix + "/([a-z]+|[0-9]{1,3})")
        else:
            self.match["path"] = self.prefix + chance.choice(["/**", "/**", "/**", "/*", "/x", "/x*"])
        self.methods = chance.sample(["GET", "POST", "DELETE", "PUT", "OPTIONS"], 2) if chance.random() < 0.25 else None
        if self.methods:
            self.match["methods"] = json.dumps(self.methods)
        self.hosts = [chance.choice(["api.example.com", "*.example.com"])] if chance.random() < 0.2 else None
        if self.hosts:
            self.match["hosts"] = json.dumps(self.hosts)
        if chance.random() < 0.12:
            self.match["headers"] = "[{ name: X-Version, %s }]" % chance.choice(["equals: \"2\"", "prefix: v", "matches: \"[0-9]+\"", "present: true", "present: false"])
        if chance.random() < 0.12:
            self.match["query"] = "[{ name: q, %s }]" % chance.choice(["equals: \"1\"", "present: true", "present: false"])

    def make_auth(self, chance):
        self.mode = chance.choice(["required", "required", "required", "optional", "none"])
        self.providers = [one for one in ("password", "keys", "machines") if chance.random() < 0.6]
        self.providers += [chance.choice(["company", "company", "company", "gone"])] if chance.random() < 0.6 or not self.providers else []
        self.kinds = chance.choice([None, None, None, "session", "direct"])
        if self.mode == "none":
            self.lines["auth"] = "none"
            return
        more = "" if self.kinds is None else f", credentials: [{self.kinds}]"
        more += ", browser: never" if chance.random() < 0.1 else ""
        more += f", max_age: {chance.choice(['1h', '1s'])}" if chance.random() < 0.08 and self.kinds == "session" else ""
        self.lines["auth"] = f"{{ providers: [{', '.join(self.providers)}], mode: {self.mode}{more} }}"
        if self.mode == "required" and chance.random() < 0.35:
            # How old a password is that comes with each request depends on when it was verified first.
            allowed = [one for one in CONDITIONS if "1s" not in one or self.kinds == "session"]
            self.lines["authorize"] = f"[{', '.join(chance.sample(allowed, chance.randint(1, 2)))}]"

    def make_rest(self, chance, limits):
        if chance.random() < 0.2:
            origins = chance.choice(["['https://web.example.com']", "['https://*.example.com', capacitor://localhost]", "['*']"])
            more = ", credentials: true" if "*'" not in origins[-4:] and chance.random() < 0.5 else ""
            more += chance.choice(["", ", expose: [X-Internal]", ", headers: [authorization], max_age: 10m, methods: [PUT]"])
            self.lines["cors"] = f"{{ origins: {origins}{more} }}"
        bounds = ["body_bytes: 100B"] if chance.random() < 0.2 else []
        usable = sorted(name for name, (keys, _) in limits.items() if self.mode != "none" or "subject" not in keys and "provider" not in keys)
        if usable and chance.random() < 0.5:
            self.rate = chance.sample(usable, chance.randint(1, min(2, len(usable))))
            bounds.append(f"rate: [{', '.join(self.rate)}]")
            bounds += ["announce: true"] if chance.random() < 0.4 else []
        bounds += ["concurrency: 5"] if chance.random() < 0.1 else []
        if bounds:
            self.lines["limits"] = f"{{ {', '.join(bounds)} }}"
        response = ["set: { X-Frame-Options: DENY, Cache-Control: no-store }"] if chance.random() < 0.2 else []
        response += ["remove: [X-Internal]"] if chance.random() < 0.2 else []
        headers = [f"response: {{ {', '.join(response)} }}"] if response else []
        draw = chance.random()
        if draw < 0.07:
            self.kind = "redirect"
            targets = TARGETS if self.hosts else TARGETS[:3]
            self.lines["redirect"] = f"{{ to: {chance.choice(targets)}, status: {chance.choice([301, 303, 307, 308])} }}"
        elif draw < 0.12:
            self.kind = "respond"
            self.lines["respond"] = f"{{ status: {chance.choice([200, 204, 404, 503])} }}"
        elif draw < 0.16:
            self.kind = "checks"
        else:
            headers += self.make_upstream(chance)
        if headers:
            self.lines["headers"] = f"{{ {', '.join(headers)} }}"

    def make_upstream(self, chance):
        if chance.random() < 0.2:
            self.lines["split"] = "[{ upstream: api, weight: 1 }, { upstream: canary, weight: 1 }, { upstream: keyed, weight: 0 }]"
        else:
            self.lines["upstream"] = chance.choice(["api", "api", "canary", "keyed", "named"])
        if chance.random() < 0.1:
            self.lines["mirror"] = "{ upstream: shadow }"
        if chance.random() < 0.3:
            self.lines["upgrade"] = chance.choice(["[websocket]", "[websocket, acme]", "[]"])
        if chance.random() < 0.3:
            rewrite = chance.choice(REWRITES)
            self.lines["rewrite"] = rewrite % self.prefix if "%s" in rewrite else rewrite
        if chance.random() < 0.1:
            self.lines["forward_credentials"] = "true"
        remove = [f"remove: [{chance.choice(['X-Debug', 'X-Device', 'X-Forwarded-Host'])}]"] if chance.random() < 0.15 else []
        remove = [one for one in remove if "Forwarded" not in one]
        return ([f"set: {{ {', '.join(chance.sample(HEADERS, chance.randint(1, 4)))} }}"] if chance.random() < 0.8 else []) + remove

    @property
    def text(self):
        match = ", ".join(f"{key}: {value}" for key, value in self.match.items())
        return "\n".join([f"  - name: {self.name}", f"    match: {{ {match} }}"] + [f"    {key}: {value}" for key, value in self.lines.items()])


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Stand:
    """One configuration, and the gateway that runs with it."""

    def __init__(self, shared, upstreams, connector, folder, seed):
        self.shared, self.upstreams, self.connector, self.folder = shared, upstreams, connector, folder
        self.chance = chance = random.Random(seed)
        self.clear, self.secure, self.admin = free_ports(3)
        self.redirects = chance.random() < 0.12
        self.has_browser = chance.random() < 0.6
        self.has_checks = chance.random() < 0.4
        self.health = chance.choice([None, None, None, "/healthz", "/a/x"])
        self.dpop = chance.choice(["off", "off", "off", "optional", "required"])
        self.limits = {f"l{number}": (chance.choice(LIMIT_KEYS), chance.choice([2, 5, 10])) for number in range(chance.choice([0, 0, 1, 3]))}
        self.routes = [Route(chance, number, self.limits) for number in range(chance.randint(3, 8))]
        if not self.has_checks:
            self.routes = [route for route in self.routes if route.kind != "checks"] or [Route(random.Random(1), 0, {})]
        self.sessions, self.bound, self.cookie, self.blocked, self.via = [], None, None, None, None
        shared.copy(folder)
        self.text = self.configuration()
        (folder / "config.yaml").write_text(self.text)

    def configuration(self):
        chance, ports = self.chance, self.upstreams.ports
        listen = [f"""    - {{ address: "127.0.0.1:{self.clear}", redirect_to_https: {self.secure if self.redirects else "false"} }}""",
                  f"""    - address: "127.0.0.1:{self.secure}"
      tls: {{ certificate_file: ../server.pem, key_file: ../server.key, client_ca_file: ../ca.pem, client_auth: optional }}"""]
        listen += ["    - { address: \"unix:checks.sock\", trusted: true }"] if self.has_checks else []
        paths = [f"{key}: {value}" for key, value in (("encoded_slash", "keep"), ("encoded_percent", "keep"), ("repeated_slash", "merge"))
                 if chance.random() < 0.15]
        text = ["version: 1", "server:", "  workers: 1", "  listen:"] + listen
        text += [f"  health: {{ path: {self.health} }}"] if self.health else []
        text += [f"  paths: {{ {', '.join(paths)} }}"] if paths else []
        text += ["  limits: { body_bytes: 150B }"] if chance.random() < 0.2 else []
        text += ["  limits: { header_bytes: 2KiB, header_fields: 20 }"] if chance.random() < 0.1 and "limits" not in text[-1] else []
        text += ["log: { format: json, level: error }", f"admin: {{ address: \"127.0.0.1:{self.admin}\", token_file: admin-token }}",
                 "store: { url: \"memory:\" }", "accounts: { url: \"sqlite:accounts.db\" }",
                 f"sessions: {{ path: /auth, dpop: {self.dpop}, max_per_subject: 100 }}"]
        if self.has_browser:
            text.append(f"browser: {{ origin: \"http://127.0.0.1:{self.clear}\" }}")
        if chance.random() < 0.1:
            text.append("assertion: { issuer: https://gw.example.com, key_file: ../assertion.pem }")
        if self.has_checks:
            options = [f"{key}: {value}" for key, value in (("deny", 403), ("browser", "true")) if chance.random() < 0.2]
            text.append(f"forward_auth: {{ {', '.join(options)} }}" if options and (self.has_browser or "browser: true" not in options) else "forward_auth: {}")
        text.append(fixtures.PROVIDERS.rstrip())
        if self.limits:
            text.append("rate_limits:")
            text += [f"  {name}: {{ key: {key}, rate: {burst}/h }}" for name, (key, burst) in self.limits.items()]
        address = [f"http://127.0.0.1:{port}" for port in ports]
        text += ["upstreams:", f"  api: {{ endpoints: [\"{address[0]}\"] }}", f"  canary: {{ endpoints: [\"{address[1]}\"] }}",
                 f"  keyed: {{ endpoints: [\"{address[2]}\", \"{address[3]}\"], balance: {chance.choice(['hash:X-Device', 'hash:subject'])} }}",
                 f"  named: {{ endpoints: [\"{address[4]}\"], host: api.internal }}", f"  shadow: {{ endpoints: [\"{address[5]}\"] }}", "routes:"]
        self.names = {ports[0]: "api", ports[1]: "canary", ports[2]: "keyed", ports[3]: "keyed", ports[4]: "named", ports[5]: "shadow"}
        return "\n".join(text + [route.text for route in self.routes]) + "\n"

    # The gateway

    def __enter__(self):
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            [str(self.shared.martlet), "run", "--config", "config.yaml"], cwd=self.folder, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.ask("/livez")
                break
            except (OSError, urllib.error.URLError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise fixtures.Failure(f"the gateway did not start: {(self.folder / 'log').read_text()[-3000:]}\n{self.text}")
                time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def access_lines(self):
        """The access lines by the request's identifier; the gateway has to be stopped."""
        lines = {}
        for text in (self.folder / "log").read_text().splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if line.get("event") == "request":
                lines[line["request_id"]] = line
        return lines

    def ask(self, path, fields=(), method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin}{path}", headers=dict(fields), method=method)
        request.add_header("Authorization", f"Bearer {fixtures.ADMIN_TOKEN}")
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()

    def send(self, request):
        port = self.secure if request.is_secure else self.clear
        return wire.send(self.connector.open(port, request), request)

    def explain(self, request):
        """The document of the explanation: of the gateway, or of the command where it alone takes what was sent."""
        url = f"{'https' if request.is_secure else 'http'}://{request.host}{request.target}"
        credentials = [value for name, value in request.fields if name == "Authorization"]
        is_plain = all(value.isprintable() for _, value in request.fields)
        if is_plain and not request.certificate and len(credentials) < 2:
            query = [("url", url), ("method", request.method)]
            query += [("header", f"{name}: {value}") for name, value in request.sent_fields if name != "Authorization"]
            extra = [("X-Explain-Authorization", credentials[0])] if credentials else []
            try:
                return json.loads(self.ask("/explain?" + urllib.parse.urlencode(query), extra))
            except urllib.error.HTTPError as error:
                # Too long for the admin listener, which has the limits of all of them.
                if error.code not in (414, 431):
                    raise fixtures.Failure(f"{request}: {error}: {error.read().decode()}") from error
        command = [self.shared.martlet, "explain", "--config", "config.yaml", "--json", "--method", request.method, "--url", url]
        for name, value in request.sent_fields:
            command += ["--header", f"{name}: {value}"]
        command += ["--certificate", f"../{request.certificate}.pem"] if request.certificate else []
        result = fixtures.run(command, cwd=self.folder)
        if not result.stdout.startswith(b"{"):
            raise fixtures.Failure(f"{command}: {result.stderr.decode()}")
        return json.loads(result.stdout)

    # Sessions

    def log_in(self):
        for proof in {"off": [None], "optional": [None, "proof"], "required": ["proof"]}[self.dpop]:
            token = self.session("ada", proof)["access_token"]
            if proof:
                self.bound = token
            else:
                self.sessions.append(token)
        if self.dpop != "required" and self.chance.random() < 0.5:
            session = self.session("bob")
            self.blocked = session["access_token"]
            self.ask(f"/subjects/{session['subject']}/disable", method="POST")
        if self.has_browser:
            self.sign_in()
        self.signed_in = time.monotonic()

    def session(self, name, proof=None):
        """The response to a login."""
        fields = [("Content-Type", "application/json")]
        if proof:
            url = f"https://127.0.0.1:{self.secure}/auth/login/password"
            fields.append(("DPoP", self.shared.proof_key.proof("POST", url)))
        body = json.dumps({"username": name, "password": fixtures.PASSWORD}).encode()
        request = wire.Request("POST", "/auth/login/password", f"127.0.0.1:{self.secure}", fields, body)
        request.is_secure = True
        return self.expect(200, request).document

    def sign_in(self):
        """By the form of the sign-in page, for the cookie."""
        page = wire.Request("GET", "/auth/sign-in", f"127.0.0.1:{self.clear}", [("Accept", "text/html")])
        page.is_secure = True
        response = self.expect(200, page)
        cookies = "; ".join(value.split(";")[0] for value in response.values("set-cookie"))
        csrf = re.search(rb'name="csrf"[^>]* value="([^"]*)"', response.body)
        if not csrf:
            raise fixtures.Failure(f"the sign-in page has no form: {response.body!r}")
        body = urllib.parse.urlencode({"csrf": csrf[1].decode(), "username": "ada", "password": fixtures.PASSWORD, "return_to": "/"}).encode()
        fields = [("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", cookies), ("Sec-Fetch-Site", "same-origin")]
        form = wire.Request("POST", "/auth/sign-in", f"127.0.0.1:{self.clear}", fields, body)
        form.is_secure = True
        values = self.expect(303, form).values("set-cookie")
        self.cookie = next(value.split(";")[0] for value in values if value.startswith("martlet="))

    def expect(self, status, request):
        response = self.send(request)
        if response.status != status:
            raise fixtures.Failure(f"{request}: {response}")
        return response

    def wait_for_age(self):
        """Until sessions are older than the shortest `max_age`."""
        if any("1s" in value for route in self.routes for value in route.lines.values()):
            time.sleep(max(0, self.signed_in + 2.1 - time.monotonic()))
