"""The floods: for each the request that is sent, with counters that `flooder.c` fills in, and how it is sent."""

import base64
import dataclasses
import json

from crafted import cancelled_sign_ins, login_proofs, profile_changes, proofs, signatures
from signing import unsigned
from stage import PASSWORD, client_hello

# Placeholders for flooder.c: digits of a counter, base64url of letters, an address.
DIGITS, LETTERS, ADDRESS, NEXT = "\x01", "\x02", "\x03", b"\x04"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
LOGINS = ("Apple login", "WeChat login", "password login", "Basic", "refresh", "sign-in")
# Requests that are rejected immediately need few connections. Requests that wait need as many as can be waiting.
FEW, MANY, WAITING, DEPTH = 32, 1000, 4500, 4
# Connections a second that a simulated upstream accepts without delay.
ACCEPTED = 1000


@dataclasses.dataclass(frozen=True)
class Flood:
    """One kind of flood. `own` are the kinds of requests that it may affect, from the same address.

    `request` may be a function that makes several, for one gateway: signed ones, or such that need an answer first.
    `bounds` are those of SharedBound (Sources/MartletCore/Bounds) that it fills; `by_key` says that it uses a credential,
    so that a share is its own wherever it comes from. `statuses` are the statuses that it may get: a request rejected for its
    form would not be a flood of this kind. `most` is the highest rate of one that reaches the upstream: faster, it would
    keep that one busy with accepting connections, which a gateway cannot prevent."""

    name: str
    request: object
    own: tuple = ()
    bounds: tuple = ()
    by_key: bool = False
    connections: int = FEW
    held: float = 0
    sends: str = ""
    is_secure: bool = False
    most: int = 0
    issuer_delay: float = 0.05
    statuses: tuple = (401, 429, 503)

    def template(self, names_address, gateway=None):
        """The requests; with a separate client address each, where a trusted proxy names the client."""
        field = f"\r\nX-Forwarded-For: 100.{ADDRESS * 11}".encode() if names_address else b""
        requests = self.request(gateway) if callable(self.request) else [self.request]
        return NEXT.join(one.replace(b"\r\nHost: a.test", b"\r\nHost: a.test" + field, 1) for one in requests)

    def can_name_address(self):
        return callable(self.request) or b"\r\nHost: a.test" in self.request

    def foreign(self, made):
        """The unexpected statuses of the flood."""
        if self.held:
            return {}
        return {status: count for status, count in made["statuses"].items() if int(status) not in self.statuses}

    def options(self, held, rate=0):
        """Options for flooder.c; `rate` 0 is as fast as this flood may go."""
        rate = min(rate or self.most, self.most) if self.most else rate
        limit = ["--rate", rate] if rate and self.sends != "trickle" else []
        if not self.held:
            return ["--connections", self.connections, "--depth", DEPTH, *limit]
        return ["--held", max(int(held * self.held), 1), "--" + self.sends, *limit]


def post(path, body, kind=FORM, length=None):
    head = f"POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Type: {kind}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return (head + body).encode()


def get(path, authorization):
    return f"GET {path} HTTP/1.1\r\nHost: a.test\r\nAuthorization: {authorization}\r\n\r\n".encode()


def written(value):
    """JSON, in which placeholders stay what they are."""
    return json.dumps(value).replace("\\u0001", DIGITS)


def raw_get(path):
    return f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode()


def right_password():
    """Logins of one user."""
    return post("/auth/login/password", json.dumps({"username": "flood", "password": PASSWORD}), JSON)


def unknown_key():
    """Tokens without a signature, each with a key id that the issuer never had."""
    mark = b"-" * 12
    # The mark is at the start of a group of three bytes, so that its base64 can be replaced independently.
    header = json.dumps({"alg": "RS256", "kid": "x"}, separators=(",", ":")).encode().replace(b"x", mark)
    header = header.replace(b'{"', b"{" + b" " * (-header.index(mark) % 3) + b'"', 1)
    first = base64.urlsafe_b64encode(header).rstrip(b"=").replace(base64.urlsafe_b64encode(mark), LETTERS.encode() * 16)
    payload = unsigned("flood", "x").split(b".")[1]
    signature = base64.urlsafe_b64encode(b"s" * 256).rstrip(b"=")
    return get("/v1/orders", "Bearer " + b".".join([first, payload, signature]).decode())


def wrong_basic():
    """Basic credentials, each of a separate user."""
    text = base64.b64encode(b"flood" + b"u" * 13 + b":wrong pass").decode()
    mark = base64.b64encode(b"u" * 12).decode()
    return get("/v1/orders", "Basic " + text.replace(mark, LETTERS * 16, 1))


def token(prefix, length):
    """Tokens in the gateway's format that it never issued: each with a separate session and secret."""
    return prefix + DIGITS * 32 + "z" + DIGITS * (length - 34) + "A"


def floods():
    code = f"app=ios&code=bad{DIGITS * 20}"
    password = f"username=user{DIGITS * 8}&password=wrong"
    address = f"new{DIGITS * 10}@example.com"
    link = written({"token": token("mlt_", 47), "password": "correct horse battery"})
    return [
        Flood("nonce", post("/auth/nonce", ""), own=("Apple login",), bounds=("attempts.nonces", "log.lines"), statuses=(200, 429, 503)),
        Flood("WeChat code", post("/auth/login/wechat", code), own=("WeChat login",), connections=MANY,
              bounds=("wechat.exchanges", "attempts.logins", "store.codes", "store.outcomes")),
        Flood("wrong password", post("/auth/login/password", password), own=("password login", "Basic"), connections=MANY,
              bounds=("passwords.attempts", "passwords.hashes", "store.throttles", "store.bans", "accounts.calls")),
        Flood("wrong Basic", wrong_basic(), own=("password login", "Basic"), connections=MANY,
              bounds=("passwords.attempts", "passwords.hashes", "verification.calls")),
        Flood("right password", right_password(), own=("password login", "Basic"), by_key=True, statuses=(200, 429, 503),
              bounds=("store.login_locations",)),
        Flood("wrong refresh", post("/auth/refresh", "refresh_token=" + token("mrt_", 86)), own=("refresh",),
              bounds=("attempts.refreshes",)),
        Flood("unknown key", unknown_key(), own=("new key",), connections=WAITING, issuer_delay=0.5,
              bounds=("verification.threads", "verification.keys", "requests.keys")),
        Flood("unknown mat_", get("/v1/orders", "Bearer " + token("mat_", 75)), own=("session",),
              bounds=("sessions.lookups", "verification.sessions")),
        Flood("unknown mak_", get("/v1/orders", "Bearer " + token("mak_", 59)),
              bounds=("api_keys.lookups", "verification.accounts")),
        Flood("foreign token", get("/v1/orders", f"Bearer pt_{DIGITS * 20}"), own=("foreign",), connections=WAITING,
              bounds=("verification.calls", "requests.provider")),
        Flood("registration", post("/auth/register", written({"email": address, "name": "New"}), JSON),
              statuses=(202, 429, 503), bounds=("attempts.registrations",)),
        Flood("forgotten password", post("/auth/password/forgot", "email=login@example.com"), statuses=(202, 429, 503),
              bounds=("attempts.mails", "attempts.mails_to_address")),
        Flood("wrong link", post("/auth/register/verify", link, JSON), statuses=(401, 429, 503), bounds=("attempts.links",)),
        Flood("wrong code of an app", post("/auth/token", f"code=moc_{DIGITS * 43}&code_verifier={DIGITS * 43}"),
              statuses=(400, 401, 429, 503), bounds=("attempts.codes",)),
        Flood("unknown token to revoke", post("/auth/revoke", "token=" + token("mrt_", 86)), statuses=(200, 401, 429, 503),
              bounds=("attempts.revocations",)),
        Flood("wrong notification", post("/auth/apple/notifications", written({"payload": "e30.e30." + DIGITS * 40}), JSON),
              statuses=(400, 401, 429, 503), bounds=("attempts.notifications",)),
        Flood("unreadable", post("/auth/login/password", "{" + DIGITS * 8, JSON), own=LOGINS, statuses=(400, 429, 503),
              bounds=("attempts.unreadable",)),
        Flood("profile", profile_changes, by_key=True, statuses=(200, 429, 503), bounds=("attempts.profiles",)),
        Flood("cancelled sign-in", cancelled_sign_ins, own=("sign-in",), statuses=(200, 303, 400, 429, 503),
              bounds=("store.browsers",)),
        Flood("proofs", proofs, by_key=True, statuses=(200, 401, 429, 503), bounds=("store.proofs", "verification.proofs")),
        Flood("proofs at logins", login_proofs, own=("password login", "Basic"), bounds=("attempts.proofs",)),
        Flood("signatures", signatures, by_key=True, statuses=(200, 401, 429, 503), bounds=("store.signatures",)),
        Flood("busy upstream", raw_get("/busy/slow"), held=0.1, sends="churn", own=("busy",), most=ACCEPTED,
              bounds=("upstream_requests",)),
        Flood("full upstream", raw_get("/full/slow"), held=0.1, sends="churn", own=("full",), most=ACCEPTED,
              bounds=("upstream_queue", "upstream_use")),
        Flood("full route", raw_get("/narrow/slow"), held=0.1, sends="churn", own=("narrow",), most=ACCEPTED,
              bounds=("route_requests",)),
        Flood("slow login", post("/auth/login/apple", "identity_token=", length=60000), held=1, sends="trickle", bounds=("bodies",)),
        Flood("slow upload", post("/public/upload", "x", length=60000), own=("public",), held=0.5, sends="trickle",
              bounds=("upstream_connections",)),
        Flood("half TLS", client_hello(), own=("TLS",), held=1, sends="churn", is_secure=True, bounds=("handshakes", "connections")),
        Flood("half head", b"GET /public/x HTTP/1.1\r\nHost: a.test\r\nX-Half: ", held=1, sends="churn", bounds=("connections",)),
    ]


# Bounds that no row fills, and why.
WITHOUT_ROW = {
    "operators": "counted as the connections of clients are",
    "provider.calls": "of providers from shared libraries; the division is that of verification.calls",
    "plugin.work": "of queues that plugins make",
    "store.general": "of plugins; the division is that of the other partitions",
    "store.keys": "written by the gateway for itself alone",
    "store.changes": "one for each change of a subject's credentials",
    "store.nonces": "marked by logins that succeed alone, each of which needs a token of the issuer",
}
