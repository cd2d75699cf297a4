"""The floods: for each the request that is sent, with counters that `flooder.c` fills in, and how it is sent."""

import base64
import dataclasses
import json

from signing import unsigned
from stage import client_hello

# Placeholders for flooder.c: digits of a counter, base64url of letters, an address.
DIGITS, LETTERS, ADDRESS = "\x01", "\x02", "\x03"
FORM = "application/x-www-form-urlencoded"
# Requests that are rejected immediately need few connections. Requests that wait need as many as can be waiting.
FEW, MANY, WAITING, DEPTH = 32, 1000, 4500, 4


@dataclasses.dataclass(frozen=True)
class Flood:
    """One kind of flood. `own` are the kinds of requests that it may affect, from the same address.

    `statuses` are the statuses that it may get: a request rejected for its form would not be a flood of this kind."""

    name: str
    request: bytes
    own: tuple = ()
    connections: int = FEW
    held: float = 0
    sends: str = ""
    is_secure: bool = False
    issuer_delay: float = 0.05
    statuses: tuple = (401, 429, 503)

    def template(self, names_address):
        """The request; with a separate client address each, where a trusted proxy names the client."""
        field = f"\r\nX-Forwarded-For: 100.{ADDRESS * 11}".encode() if names_address else b""
        return self.request.replace(b"\r\nHost: a.test", b"\r\nHost: a.test" + field, 1)

    def can_name_address(self):
        return b"\r\nHost: a.test" in self.request

    def foreign(self, made):
        """The unexpected statuses of the flood."""
        if self.held:
            return {}
        return {status: count for status, count in made["statuses"].items() if int(status) not in self.statuses}

    def options(self, held, rate=0):
        """Options for flooder.c; `rate` 0 is as fast as possible."""
        limit = ["--rate", rate] if rate and self.sends != "trickle" else []
        if not self.held:
            return ["--connections", self.connections, "--depth", DEPTH, *limit]
        return ["--held", max(int(held * self.held), 1), "--" + self.sends, *limit]


def post(path, body, kind=FORM, length=None):
    head = f"POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Type: {kind}\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return (head + body).encode()


def get(path, authorization):
    return f"GET {path} HTTP/1.1\r\nHost: a.test\r\nAuthorization: {authorization}\r\n\r\n".encode()


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
    return [
        Flood("nonce", post("/auth/nonce", ""), own=("Apple login",), statuses=(200, 429, 503)),
        Flood("WeChat code", post("/auth/login/wechat", code), own=("WeChat login",), connections=MANY),
        Flood("wrong password", post("/auth/login/password", password), own=("password login", "Basic"), connections=MANY),
        Flood("wrong Basic", wrong_basic(), own=("password login", "Basic"), connections=MANY),
        Flood("wrong refresh", post("/auth/refresh", "refresh_token=" + token("mrt_", 86)), own=("refresh",)),
        Flood("unknown key", unknown_key(), own=("new key",), connections=WAITING, issuer_delay=0.5),
        Flood("unknown mat_", get("/v1/orders", "Bearer " + token("mat_", 75)), own=("session",)),
        Flood("slow login", post("/auth/login/apple", "identity_token=", length=60000), held=1, sends="trickle"),
        Flood("slow upload", post("/public/upload", "x", length=60000), own=("public",), held=0.5, sends="trickle"),
        Flood("half TLS", client_hello(), own=("TLS",), held=1, sends="churn", is_secure=True),
        Flood("half head", b"GET /public/x HTTP/1.1\r\nHost: a.test\r\nX-Half: ", held=1, sends="churn"),
    ]
