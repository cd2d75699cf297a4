"""The session: what clients, an operator and the system do to a gateway from its start to its end."""

import collections
import dataclasses
import json
import signal
import threading
import time
import urllib.parse

from client import PATIENCE, Client, http2_request, trusting
from stage import BLOB, EVENTS, PASSWORD, USER, Gateway

START = 20
# In this time after a failure everything has to be served again. A name that could not be looked up is tried again
# after five seconds.
RECOVERY = 6
# The configuration's drain is 2 s.
EXIT = 12
BODY = bytes(range(256)) * 800
FORM = "Content-Type: application/x-www-form-urlencoded"


@dataclasses.dataclass
class Facts:
    """What a run has shown."""

    # (thread, call, object, number), the error, 0 for fewer bytes, and for how many milliseconds all such calls fail, 0
    # for this one alone; None in a run without one.
    call: tuple | None = None
    error: int = 0
    milliseconds: int = 0
    # When it failed first; None where the call was not reached.
    injected: float | None = None
    # Whether the call was of a kind that can be cut, where it was to be.
    changed: bool = True
    ready: float | None = None
    exchanges: list = dataclasses.field(default_factory=list)
    seen: list = dataclasses.field(default_factory=list)
    subjects: set = dataclasses.field(default_factory=set)
    logged_out: bool = False
    # The session that was ended, and the data of the events that were delivered or are stored.
    session: str = ""
    events: list = dataclasses.field(default_factory=list)
    recovered: bool = False
    reloaded: bool = False
    # When SIGTERM was sent; None where the gateway has ended by itself.
    terminated: float | None = None
    exited: float | None = None
    status: int | None = None
    # The share of a processor that is used while one request waits.
    busy: float | None = None
    descriptors: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    log: str = ""
    access: list = dataclasses.field(default_factory=list)
    calls: dict = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


class Session:
    """One run."""

    def __init__(self, stage, call=None, error=0, milliseconds=0):
        self.stage, self.began = stage, time.monotonic()
        self.facts = Facts(call, error, milliseconds)
        stage.upstream.seen = self.facts.seen
        self.gateway = Gateway(stage, [*call, error, milliseconds] if call else [])
        self.client = self.new_client()
        self.number = 0
        self.tokens = {}

    def new_client(self):
        return Client(self.stage.ports["public"], self.facts.exchanges)

    def run(self):
        try:
            if self.start():
                for step in (self.public, self.sign_in, self.api, self.other_ways, self.operator, self.end_session,
                             self.reload, self.recover, self.settle, self.terminate):
                    if self.gateway.process.poll() is not None:
                        break
                    step()
            self.client.close()
            self.facts.status = self.gateway.wait(EXIT)
            self.facts.exited = time.monotonic()
        finally:
            self.gateway.close()
        facts = self.facts
        if injected := self.gateway.injected():
            facts.injected, facts.changed = injected[0], injected[2] != "nothing"
        delivered = [one.body.decode(errors="replace") for one in facts.seen if one.path == "/public/hook"]
        facts.events = delivered + self.gateway.stored_events()
        facts.log, facts.access, facts.calls = self.gateway.log(), self.gateway.access_lines(), self.gateway.calls()
        facts.seconds = time.monotonic() - self.began
        return facts

    def path(self, route, kind):
        """A path of this request alone: access lines and the upstream's requests have it."""
        self.number += 1
        return f"/{route}/{kind}/{self.number}"

    # Steps

    def start(self):
        """:returns: whether the gateway serves."""
        end = time.monotonic() + START
        while time.monotonic() < end and self.gateway.process.poll() is None:
            if self.is_listening():
                self.facts.ready = time.monotonic()
                return True
            time.sleep(0.01)
        if self.gateway.process.poll() is None:
            # Nothing is listening: what waits for SIGTERM has to end by it.
            self.terminate_now()
        return False

    def is_listening(self):
        """Asked of the log, not of the listener: a connection to it would be one of those that are counted."""
        return self.gateway.log().count('"event":"listening"') >= 4 or self.has_accepted()

    def has_accepted(self):
        """Where the log itself has failed, a response has to do, long after a start has ended otherwise: its listeners
        accept before all of it has succeeded."""
        if time.monotonic() - self.began < START / 4:
            return False
        try:
            probe = Client(self.stage.ports["public"], [])
            found = probe.request("probe", "GET", "/public/probe/0", patience=1)
            probe.close()
            return found.outcome == "response"
        except OSError:
            return False

    def public(self):
        forged = ["X-User-Id: usr_forged", "X-Auth-Subject: usr_forged"]
        self.client.request("public", "GET", self.path("public", "small"), forged, expected=b"small")
        self.client.request("upload", "POST", self.path("public", "echo"), body=BODY, expected=BODY)
        self.client.request("download", "GET", self.path("public", "blob"), expected=BLOB)

    def until_success(self, attempt):
        """Tries again, as apps do: an outage may have taken the first response."""
        end = time.monotonic() + RECOVERY
        while True:
            exchange = attempt()
            is_final = exchange.is_success or exchange.credential == "unknown" and exchange.status == 401
            if is_final or time.monotonic() > end or exchange.outcome == "silence":
                return exchange
            time.sleep(0.05)

    def sign_in(self):
        form = urllib.parse.urlencode({"username": USER, "password": PASSWORD}).encode()
        exchange = self.until_success(lambda: self.client.request(
            "login", "POST", "/auth/login/password", [FORM], form, credential="valid"))
        self.keep_tokens(exchange)

    def keep_tokens(self, exchange):
        if not exchange.is_success:
            return
        try:
            self.tokens = json.loads(exchange.body)
            self.facts.subjects.add(self.tokens["subject"])
        except (ValueError, KeyError):
            exchange.outcome, exchange.fault = "malformed", "the body of a login has no tokens"

    def bearer(self):
        return f"Authorization: Bearer {self.tokens.get('access_token', '')}"

    def valid(self, step, kind="small", client=None, expected=b"small"):
        """A request with the session's access token; none where there is no session."""
        if not self.tokens:
            return None
        return (client or self.client).request(
            step, "GET", self.path("v1", kind), [self.bearer(), "X-User-Id: usr_forged"], credential="valid",
            expected=expected)

    def api(self):
        self.valid("api")
        wrong = "mat_" + "A" * 75
        self.client.request(
            "wrong", "GET", self.path("v1", "small"), [f"Authorization: Bearer {wrong}"], credential="wrong")
        self.client.request("anonymous", "GET", self.path("v1", "small"), credential="wrong")
        if self.tokens:
            body = json.dumps({"refresh_token": self.tokens["refresh_token"]}).encode()
            self.keep_tokens(self.until_success(lambda: self.client.request(
                "refresh", "POST", "/auth/refresh", ["Content-Type: application/json"], body, credential="valid")))
        self.valid("refreshed")
        self.valid("events", "events", expected=EVENTS)

    def other_ways(self):
        """A WebSocket, TLS, and HTTP/2."""
        if not self.tokens:
            return
        tunnel = self.new_client()
        tunnel.upgrade("websocket", self.path("v1", "socket"), [self.bearer()], b"frame" * 20, credential="valid")
        tunnel.close()
        secure = Client(self.stage.ports["tls"], self.facts.exchanges, trusting(self.stage.certificate))
        self.valid("tls", client=secure)
        secure.close()
        http2_request(
            self.stage.ports["public"], self.facts.exchanges, "http2", self.path("v1", "small"),
            [("authorization", self.bearer().partition(" ")[2])], credential="valid", expected=b"small")

    def operator(self):
        admin = Client(self.stage.ports["admin"], self.facts.exchanges)
        admin.request("readyz", "GET", "/readyz")
        admin.request("metrics", "GET", "/metrics")
        admin.close()

    def log_out(self, credential):
        return self.client.request(
            "logout", "POST", "/auth/logout", [self.bearer()], b"", credential=credential)

    def end_session(self):
        if not self.tokens:
            return
        # The session may have ended although the response was lost: then its token is not valid any more.
        first = self.log_out("valid")
        again = first if first.is_success else self.until_success(lambda: self.log_out("unknown"))
        self.facts.logged_out = again.is_success or again.status == 401
        self.facts.session = self.tokens.get("session_id", "")
        if self.facts.logged_out:
            for client in (self.client, self.new_client()):
                client.request("ended", "GET", self.path("v1", "small"), [self.bearer()], credential="ended")
                client.close()
        self.tokens = {}

    def reload(self):
        self.stage.write_configuration(self.gateway.folder, 2)
        end, next_signal = time.monotonic() + RECOVERY, 0.0
        while time.monotonic() < end and not self.facts.reloaded:
            if time.monotonic() > next_signal:
                self.gateway.signal(signal.SIGHUP)
                next_signal = time.monotonic() + 1
            exchange = self.client.request("reload", "GET", self.path("public", "small"), expected=b"small")
            self.facts.reloaded = exchange.headers.get("x-generation-seen") == "2"
            if exchange.outcome == "silence":
                return
            time.sleep(0.01)

    def recover(self):
        """Everything has to work: signing in anew, and a request with that session, over new connections."""
        injected = self.gateway.injected()
        end = max(injected[1] if injected else 0, time.monotonic() - RECOVERY / 2) + RECOVERY
        while not self.facts.recovered:
            self.client.close()
            self.sign_in()
            exchange = self.valid("recovered")
            self.facts.recovered = bool(exchange and exchange.is_success)
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        self.client.close()

    def settle(self):
        """What is open once nobody is connected: it is compared with a run without a failure."""
        end = time.monotonic() + 3
        while True:
            self.facts.descriptors = self.gateway.descriptors()
            expected = self.stage.reference
            if expected is None:
                time.sleep(0.3)
                self.facts.descriptors = self.gateway.descriptors()
                return
            if not surplus(self.facts.descriptors, expected) or time.monotonic() > end:
                return
            time.sleep(0.05)

    def terminate(self):
        """SIGTERM while a request is under way, which is finished."""
        slow = self.new_client()
        path = self.path("public", "slow")
        thread = threading.Thread(target=lambda: slow.request("slow", "GET", path, expected=b"small", patience=PATIENCE))
        count = len(self.facts.seen)
        thread.start()
        end = time.monotonic() + 1
        while len(self.facts.seen) == count and thread.is_alive() and time.monotonic() < end:
            time.sleep(0.005)
        before, began = self.gateway.processor_time(), time.monotonic()
        time.sleep(0.1)
        self.facts.busy = (self.gateway.processor_time() - before) / (time.monotonic() - began)
        self.terminate_now()
        thread.join()
        slow.close()

    def terminate_now(self):
        self.facts.terminated = time.monotonic()
        try:
            self.gateway.signal(signal.SIGTERM)
        except OSError:
            pass


def surplus(found, expected):
    """What is open in addition to what a run without a failure has."""
    # The pool keeps a few connections, and SQLite opens the log of a connection when that first reads.
    several = {"upstream": 4, "accounts.db-wal": expected.get("accounts.db", 0)}
    more = {}
    for name, count in found.items():
        allowed = several.get(name, expected.get(name, 0))
        if count > allowed:
            more[name] = count - allowed
    return more
