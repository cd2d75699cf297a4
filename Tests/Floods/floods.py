"""The floods: for each the request that is sent, whose counters `flooder.c` fills in, and how it is sent."""

import base64
import dataclasses
import json

from signing import unsigned
from stage import client_hello

# What flooder.c fills in: digits of a counter, base64url of letters, an address.
DIGITS, LETTERS, ADDRESS = "\x01", "\x02", "\x03"
FORM = "application/x-www-form-urlencoded"
# What is refused at once keeps a gateway busy over few connections. What waits for somebody takes as many as would be waiting.
FEW, MANY, WAITING, DEPTH = 32, 1000, 4500, 4


@dataclasses.dataclass(frozen=True)
class Flood:
    """One kind of flood. `own` are the kinds of requests that it may be felt by, from the address that it comes from.

    `answers` are the statuses that it may get where it gets one: what is refused for its form would be no flood of its kind."""

    name: str
    request: bytes
    own: tuple = ()
    connections: int = FEW
    held: float = 0
    sends: str = ""
    is_secure: bool = False
    issuer_delay: float = 0.05
    answers: tuple = (401, 429, 503)

    def template(self, names_address):
        """The request; with an address of its own each, where the client is to be named by a trusted proxy."""
        field = f"\r\nX-Forwarded-For: 100.{ADDRESS * 11}".encode() if names_address else b""
        return self.request.replace(b"\r\nHost: a.test", b"\r\nHost: a.test" + field, 1)

    def can_name_address(self):
        return b"\r\nHost: a.test" in self.request

    def foreign(self, made):
        """The statuses that the flood got and should not have."""
        if self.held:
            return {}
        return {status: count for status, count in made["statuses"].items() if int(status) not in self.answers}

    def options(self, held, rate=0):
        """How flooder.c is to send it; `rate` 0 is as fast as it can."""
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
    """A token without a signature, each under an id that the issuer never had."""
    mark = b"-" * 12
    # The mark stands where a group of three bytes begins, so that its base64 can be exchanged by itself.
    header = json.dumps({"alg": "RS256", "kid": "x"}, separators=(",", ":")).encode().replace(b"x", mark)
    header = header.replace(b'{"', b"{" + b" " * (-header.index(mark) % 3) + b'"', 1)
    first = base64.urlsafe_b64encode(header).rstrip(b"=").replace(base64.urlsafe_b64encode(mark), LETTERS.encode() * 16)
    payload = unsigned("flood", "x").split(b".")[1]
    signature = base64.urlsafe_b64encode(b"s" * 256).rstrip(b"=")
    return get("/v1/orders", "Bearer " + b".".join([first, payload, signature]).decode())


def wrong_basic():
    """Basic credentials of a user of its own each."""
    text = base64.b64encode(b"flood" + b"u" * 13 + b":wrong pass").decode()
    mark = base64.b64encode(b"u" * 12).decode()
    return get("/v1/orders", "Basic " + text.replace(mark, LETTERS * 16, 1))


def token(prefix, length):
    """A token of the gateway's form that it never gave out: each names a session of its own, and has a secret of its own."""
    return prefix + DIGITS * 32 + "z" + DIGITS * (length - 34) + "A"


def floods():
    code = f"app=ios&code=bad{DIGITS * 20}"
    password = f"username=user{DIGITS * 8}&password=wrong"
    return [
        Flood("nonce", post("/auth/nonce", ""), own=("Apple login",), answers=(200, 429, 503)),
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
