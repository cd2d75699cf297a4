"""The kinds of requests that are counted: the gateway's configuration, the clients and their requests."""

import base64
import contextlib
import dataclasses
import hmac
import html
import http.cookiejar
import itertools
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import conversation
import counting
from machinery import Collector, CountedGateway, Issuer, NotThere, Redis, post

CONFIGURATION = """
version: 1
server: { listen: [{ address: "127.0.0.1:{port}"{tls} }], workers: 1 }
admin: { address: "127.0.0.1:{admin}" }
log: { level: info, format: json }
store: { url: "{store}" }
sessions: { cache_ttl: 1m }
{browser}{rate_limits}{tracing}providers:
  apple: { kind: apple, audiences: [com.example.app], jwks_url: "{issuer}/auth/keys" }
{users}upstreams:
  origin: { endpoints: ["http://127.0.0.1:{upstream}"{endpoints}]{policies} }
routes:
  - { name: public, match: { path: "/public/**" }, auth: none, upstream: origin }
  - { name: api, match: { path: "/v1/**" }, auth: { providers: [{providers}] }{limits}{rules}, {target} }
"""
# Of one user, whose password is hashed at the lowest cost that bcrypt has.
USERS = "ada:$2b$04$HIu6OgWM5eky67M1xCtAx.7pBcaG0VfyJ7UFxaIPY0F1tAYvgsJpm\n"
USER, PASSWORD = "ada", "correct horse"
BROWSER = 'browser: { origin: "http://127.0.0.1:{port}" }\n'
# What curl sends.
FIELDS = [(b"user-agent", b"curl/7.88.1"), (b"accept", b"*/*")]
# Limits that no request exceeds.
RATE_LIMITS = """rate_limits:
  per_address: { key: address, rate: 1000000/s }
  per_person: { key: subject, rate: 1000000/s }
"""
LIMITS = ", limits: { rate: [per_address, per_person], announce: true, concurrency: 1000 }"
# What an upstream and a route may have; no request exceeds a bound, or is repeated.
POLICIES = ", outlier: {}, retries: {}, breaker: {}, slow_start: 1s"
# The same address in another spelling is another endpoint.
BALANCED = ', {{ url: "http://[::ffff:127.0.0.1]:{upstream}", weight: {weight} }}'
CORS = ", cors: { origins: [\"https://app.example.com\"], methods: [GET], headers: [authorization], credentials: true }"
SPLIT = "split: [{ upstream: origin, weight: 3 }, { upstream: other, weight: 1 }]"
MIRROR = "upstream: origin, mirror: { upstream: other, percent: 0.0001 }"
OTHER = '\n  other: { endpoints: ["http://[::ffff:127.0.0.1]:{upstream}"] }'
# Providers besides Apple's.
PROVIDERS = {
    "oidc": '{ kind: oidc, issuer: "https://appleid.apple.com", audiences: [com.example.app], jwks_url: "{issuer}/auth/keys" }',
    "api_key": "{ kind: api_key, keys_file: keys.jsonl }",
    "mtls": "{ kind: mtls, identity: san_dns }",
    "signed": "{ kind: signed, max_age: 1h, keys: { k: { algorithm: hmac-sha256, subject: ada, secret: %s } } }",
}
SIGNING_SECRET = bytes(range(32))
PROVIDERS["signed"] %= base64.b64encode(SIGNING_SECRET).decode()
CONNECTIONS = 8
STREAMS = 100
REQUESTS = 8000
DISTINCT = 1000


@dataclasses.dataclass
class Counts:
    """What one request of a scenario costs, on the threads that serve requests."""

    instructions: float
    allocations: float
    references: float
    accesses: float
    turns: float
    profile: counting.Profile
    requests: int


@dataclasses.dataclass
class Scenario:
    """One kind of request."""

    name: str
    summary: str
    is_known_hit: bool = True
    path: bytes = b"/v1/orders"
    uses_store: bool = False
    is_secure: bool = False
    is_framed: bool = False
    has_changing_heads: bool = False
    has_cookie: bool = False
    has_limits: bool = False
    # Texts of the configuration: more endpoints, keys of the upstream and of the route, what the route leads to.
    endpoints: str = ""
    policies: str = ""
    rules: str = ""
    target: str = "upstream: origin"
    # The share of requests with a trace; none at all without tracing.
    sampled: str = ""
    # Of each request.
    fields: tuple = ()
    tokens: int = 1
    kind: str = "apple"

    def run(self, binary):
        """Starts everything, warms it up, counts, ends everything."""
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="martlet-counts-")))

            def keep(thing):
                stack.callback(thing.close)
                return thing

            issuer, upstream = keep(Issuer(binary, folder)), keep(conversation.Upstream(self.has_changing_heads))
            store = f"redis://127.0.0.1:{keep(Redis(folder)).port}" if self.uses_store else "memory:"
            settings = {"issuer": issuer.url, "upstream": str(upstream.port), "store": store, "tls": "", "browser": "", "users": ""}
            settings["providers"] = "apple"
            for name in ("endpoints", "policies", "rules", "target"):
                settings[name] = getattr(self, name).replace("{upstream}", settings["upstream"])
            settings |= {"rate_limits": RATE_LIMITS, "limits": LIMITS} if self.has_limits else {"rate_limits": "", "limits": ""}
            settings["tracing"] = ""
            if self.sampled:
                settings["tracing"] = f"tracing: {{ otlp: {keep(Collector()).url}, sample: {self.sampled} }}\n"
            if self.has_cookie:
                (folder / "users").write_text(USERS, encoding="utf-8")
                settings["users"] = "  staff: { kind: password, users: \"htpasswd:users\" }\n"
                settings |= {"browser": BROWSER, "providers": "staff"}
            if self.is_secure:
                settings["tls"] = make_certificate(folder)
            if self.kind != "apple":
                settings["users"] = f"  other: {PROVIDERS[self.kind]}\n".replace("{issuer}", issuer.url)
                settings["providers"] = "other"
            if self.kind == "mtls":
                settings["tls"] = settings["tls"].replace(" }", ", client_ca_file: cert.pem, client_auth: required }")
            if self.kind == "api_key":
                self.key = make_key(binary, folder)
            text = CONFIGURATION
            for name, value in settings.items():
                text = text.replace("{%s}" % name, value)
            gateway = keep(CountedGateway(binary, folder, text))
            requests = itertools.cycle(self.requests(issuer, gateway))
            clients = keep(self.clients(gateway, folder))
            # Every token is verified and every buffer has grown before counting begins.
            conversation.converse(clients, upstream, requests, max(2 * DISTINCT, REQUESTS // 4) // clients.batch)
            self.check(upstream.last_head)
            gateway.begin()
            conversation.converse(clients, upstream, requests, REQUESTS // clients.batch)
            return counts([counting.read(path) for path in gateway.finish()])

    def requests(self, issuer, gateway):
        if self.has_cookie:
            return [self.request([(b"cookie", b"theme=dark; " + sign_in(gateway.url).encode())])]
        if self.kind == "mtls":
            return [self.request([])]
        if self.kind == "api_key":
            return [self.request([(b"x-api-key", self.key)])]
        if self.kind == "signed":
            return [self.request(signature(self.path))]
        if self.uses_store:
            login = post(gateway.url + "/auth/login/apple", {"identity_token": issuer.token(0)})
            tokens = [login["access_token"]]
        else:
            tokens = [issuer.token(number) for number in range(self.tokens)]
        credentials = [[(b"authorization", b"Bearer " + token.encode())] for token in tokens] or [[]]
        return [self.request(credential) for credential in credentials]

    def request(self, credential):
        fields = FIELDS + list(self.fields) + credential
        if self.is_framed:
            pseudo = {b":method": b"GET", b":scheme": b"http", b":authority": b"api.example.com", b":path": self.path}
            return [*pseudo.items(), *fields]
        lines = [b"GET " + self.path + b" HTTP/1.1", b"Host: api.example.com"]
        lines += [name.title() + b": " + value for name, value in fields]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def clients(self, gateway, folder):
        if self.is_framed:
            return conversation.StreamClients(gateway.port, STREAMS)
        tls = conversation.tls_context(folder / "cert.pem") if self.is_secure else None
        if self.kind == "mtls":
            tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        return conversation.PlainClients(gateway.port, CONNECTIONS, tls)

    def check(self, head):
        """Checks that the complete work is counted: the identity is in the head, and the token is not."""
        is_named = b"\r\nx-auth-subject: " in head.lower()
        is_kept = b"\r\nauthorization:" in head.lower() or b"martlet=" in head or b"mak_" in head or b"keyid" in head
        if is_named != (self.tokens > 0) or is_kept:
            raise NotThere(f"{self.name}: the upstream got\n{head.decode(errors='replace')}")


def sign_in(url):
    """The session cookie of a browser that has sent the form for a name and a password."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar), Stay())
    page = browser.open(f"{url}/auth/sign-in", timeout=30).read().decode()
    token = re.search(r'name="csrf" value="([^"]+)"', page)
    if not token:
        raise NotThere(f"no form at {url}/auth/sign-in:\n{page}")
    form = {"username": USER, "password": PASSWORD, "csrf": html.unescape(token[1])}
    browser.open(f"{url}/auth/sign-in", urllib.parse.urlencode(form).encode(), timeout=30)
    return next(f"{one.name}={one.value}" for one in jar if one.name == "martlet")


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def http_error_303(self, request, response, code, message, headers):
        return response


def make_key(binary, folder):
    """An API key in the file that the gateway reads."""
    (folder / "key.yaml").write_text(
        f"version: 1\nproviders: {{ other: {PROVIDERS['api_key']} }}\nupstreams: {{ o: {{ endpoints: [builtin:echo] }} }}\n"
        "routes: [{ name: all, upstream: o, auth: { providers: [other] } }]\n", encoding="utf-8")
    made = subprocess.run(
        [binary, "key", "create", "--subject", "ada", "--config", "key.yaml"], cwd=folder, capture_output=True, check=True)
    return made.stdout.strip()


def signature(path):
    """The fields of a signed request (RFC 9421)."""
    lines = [("@method", "GET"), ("@authority", "api.example.com"), ("@path", path.decode()), ("@query", "?")]
    covered = "(%s);created=%d;keyid=\"k\"" % (" ".join(f'"{name}"' for name, _ in lines), time.time())
    base = "".join(f'"{name}": {value}\n' for name, value in lines) + '"@signature-params": ' + covered
    code = base64.b64encode(hmac.digest(SIGNING_SECRET, base.encode(), "sha256"))
    return [(b"signature-input", b"sig=" + covered.encode()), (b"signature", b"sig=:" + code + b":")]


def make_certificate(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"),
         "-out", str(folder / "cert.pem")], check=True, capture_output=True)
    return ", tls: { certificate_file: cert.pem, key_file: key.pem }"


def counts(profiles):
    """The counts of the threads that serve requests: the loop, and the thread that writes its log.

    Other threads do periodic work, which is independent of requests.
    """
    # The loop of requests, not that of the admin listener.
    loop = max((one for one in profiles if one.touches(counting.LOOP_THREAD)), key=lambda profile: profile.instructions)
    writers = [one for one in profiles if one is not loop and one.touches(counting.LOG_THREAD)]
    whole = sum(writers, loop)
    return Counts(
        instructions=whole.instructions / REQUESTS, allocations=loop.allocations / REQUESTS,
        references=loop.called(counting.REFERENCES) / REQUESTS, accesses=loop.called(counting.ACCESSES) / REQUESTS,
        turns=loop.called(counting.WAITS) / REQUESTS, profile=whole, requests=REQUESTS)


SCENARIOS = [
    Scenario("apple", "one known Apple token"),
    Scenario("session", "one session of the gateway's own, stored in Redis", uses_store=True),
    Scenario("cookie", "one session of a browser by its cookie, beside another cookie, stored in Redis", is_known_hit=False, uses_store=True, has_cookie=True),
    Scenario("rotation", f"{DISTINCT:,} known Apple tokens in turn", tokens=DISTINCT),
    Scenario("heads", "one known Apple token, each response head different from the previous one", has_changing_heads=True),
    Scenario("open", "a public route", path=b"/public/orders", tokens=0),
    Scenario("tls", "one known Apple token over TLS 1.3", is_known_hit=False, is_secure=True),
    Scenario("oidc", "one known token of any issuer", kind="oidc"),
    Scenario("key", "one known API key in a header of its own", is_known_hit=False, kind="api_key"),
    Scenario("signed", "one request with a signature of its own, by HMAC", is_known_hit=False, kind="signed"),
    Scenario("certificate", "one known client certificate, over TLS 1.3", is_known_hit=False, is_secure=True, kind="mtls"),
    Scenario("rate limit", "one known Apple token, counted by its address and its caller", is_known_hit=False, has_limits=True),
    Scenario("policies", "one known Apple token, an upstream with outlier, retries and breaker", policies=POLICIES),
    Scenario("balanced", "one known Apple token, two endpoints with equal weights", endpoints=BALANCED.format(weight=1, upstream="{upstream}")),
    Scenario("weighted", "one known Apple token, two endpoints with weights", endpoints=BALANCED.format(weight=3, upstream="{upstream}")),
    Scenario("hashed", "one known Apple token, two endpoints by the hash of the subject", endpoints=BALANCED.format(weight=1, upstream="{upstream}"), policies=", balance: hash:subject"),
    Scenario("split", "one known Apple token, two upstreams that share a route", policies=" }" + OTHER[:-2], target=SPLIT),
    Scenario("mirrored", "one known Apple token, a route that copies one of a million requests", policies=" }" + OTHER[:-2], target=MIRROR),
    Scenario("not sampled", "one known Apple token, with tracing that samples no request", is_known_hit=False, sampled="0%"),
    Scenario("sampled", "one known Apple token, with a trace of every request", is_known_hit=False, sampled="100%"),
    Scenario("cors", "one known Apple token from a page of another origin", rules=CORS, fields=((b"origin", b"https://app.example.com"),)),
    Scenario("http2", f"one known Apple token over HTTP/2, {STREAMS} streams", is_known_hit=False, is_framed=True),
]
