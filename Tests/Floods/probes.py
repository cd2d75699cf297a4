"""The probes during a flood: one request of each kind repeatedly, each over a new connection."""

import asyncio
import base64
import collections
import itertools
import json
import ssl
import statistics
import time

from crafted import cancelled, signed
from stage import BASIC_USERS, COOLDOWN, PASSWORD

TIMEOUT = 10
FORM = "application/x-www-form-urlencoded"


class Refused(Exception):
    """An unexpected response; the text is shown in the table."""


class Client:
    """Sends requests to one gateway, and measures each response time."""

    def __init__(self, gateway, issuer):
        self.gateway, self.issuer = gateway, issuer
        self.numbers = itertools.count()
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE

    async def ask(self, method, path, body=None, authorization=None, secure=False):
        """:returns: the body of a 200 and the seconds that it took, with the connection that it came over."""
        lines = [f"{method} {path} HTTP/1.1", "Host: api.example.com"]
        if authorization:
            lines.append(f"Authorization: {authorization}")
        if body is not None:
            lines += [f"Content-Type: {'application/json' if body.startswith('{') else FORM}", f"Content-Length: {len(body)}"]
        response, took = await self.send("\r\n".join(lines) + "\r\n\r\n" + (body or ""), secure)
        return response.split(b"\r\n\r\n", 1)[1], took

    async def send(self, request, secure=False, expected="200"):
        """:returns: the response, which has one of the expected statuses, and the seconds that it took."""
        started = time.perf_counter()
        request = request.replace("\r\n", "\r\nConnection: close\r\n", 1).encode()
        port = self.gateway.tls if secure else self.gateway.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.tls if secure else None)
        try:
            writer.write(request)
            response = await reader.read()
            took = time.perf_counter() - started
        finally:
            writer.transport.abort()
        status = response[9:12].decode(errors="replace")
        if status not in expected.split():
            raise Refused(status or "closed")
        return response, took

    async def login(self, provider, body):
        said, took = await self.ask("POST", f"/auth/login/{provider}", body)
        return json.loads(said), took

    async def route(self, authorization, path="/v1/orders"):
        return (await self.ask("GET", path, authorization=authorization))[1]


class AppleLogin:
    """A nonce, and a login with a token that has it."""

    name, interval = "Apple login", 0.15

    async def prepare(self, client):
        """Prepares what the first request needs."""

    async def once(self, client):
        said, first = await client.ask("POST", "/auth/nonce", "")
        nonce = json.loads(said)["nonce"]
        token = client.issuer.token("login", nonce=nonce)
        _, second = await client.login("apple", json.dumps({"identity_token": token, "nonce": nonce}))
        return first + second


class WeChatLogin(AppleLogin):
    """A login with an unused code."""

    name, interval = "WeChat login", 0.15

    async def once(self, client):
        code = f"good{next(client.numbers)}x{time.time_ns()}"
        return (await client.login("wechat", f"app=ios&code={code}"))[1]


class PasswordLogin(AppleLogin):
    name, interval = "password login", 0.18

    async def once(self, client):
        return (await client.login("password", json.dumps({"username": "login", "password": PASSWORD})))[1]


class Basic(AppleLogin):
    """Name and password on a route, of several users in turn."""

    name, interval = "Basic", 0.18

    async def once(self, client):
        user = BASIC_USERS[next(client.numbers) % len(BASIC_USERS)]
        return await client.route("Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode())


class Refresh:
    """Several sessions in turn: one may be refreshed 16 times in half a minute."""

    name, interval = "refresh", 0.15

    async def prepare(self, client):
        self.tokens = collections.deque()
        for number in range(24):
            said, _ = await client.login("apple", json.dumps({"identity_token": client.issuer.token(f"refresh{number}")}))
            self.tokens.append(said["refresh_token"])

    async def once(self, client):
        self.tokens.rotate()
        said, took = await client.ask("POST", "/auth/refresh", json.dumps({"refresh_token": self.tokens[0]}))
        self.tokens[0] = json.loads(said)["refresh_token"]
        return took


class Session:
    """A token of the gateway's own, on a route."""

    name, interval = "session", 0.15

    async def prepare(self, client):
        said, _ = await client.login("apple", json.dumps({"identity_token": client.issuer.token("session")}))
        self.token = said["access_token"]

    async def once(self, client):
        return await client.route("Bearer " + self.token)


class KnownKey(AppleLogin):
    """An Apple token that is in no cache, with a known key."""

    name, interval = "known key", 0.15

    async def once(self, client):
        return await client.route("Bearer " + client.issuer.token("bearer", jti=next(client.numbers)))


class NewKey(AppleLogin):
    """The issuer publishes a key under a new id, and a token with it is sent once a fetch is permitted again."""

    name, interval = "new key", COOLDOWN + 0.1

    async def once(self, client):
        sign = client.issuer.rotate()
        await asyncio.sleep(COOLDOWN + 0.05)
        return await client.route("Bearer " + sign("bearer"))


class Public(AppleLogin):
    name, interval = "public", 0.15

    async def once(self, client):
        return await client.route(None, "/public/hello")


class Handshake(AppleLogin):
    """A new TLS connection, and a request to the public route over it."""

    name, interval = "TLS", 0.15

    async def once(self, client):
        return (await client.ask("GET", "/public/hello", secure=True))[1]


class KeyOfMachine(AppleLogin):
    name, interval = "API key", 0.15

    async def once(self, client):
        return await client.route("Bearer " + client.gateway.stage.key)


class Foreign(AppleLogin):
    """A token of a provider that another process verifies."""

    name, interval = "foreign", 0.15

    async def once(self, client):
        return await client.route("Bearer pt_good")


class Signed(AppleLogin):
    """A partner's request with a nonce."""

    name, interval = "signed", 0.15

    async def once(self, client):
        secret = base64.b64decode((client.gateway.stage.folder / "other.secret").read_text())
        request = signed("GET", "/v1/orders", secret, "other").decode()
        return (await client.send(request))[1]


class SignIn(AppleLogin):
    """A sign-in that the user cancels: it comes back, and is judged."""

    name, interval = "sign-in", 0.15

    async def once(self, client):
        started, first = await client.send("GET /auth/start/apple HTTP/1.1\r\nHost: a.test\r\n\r\n", expected="302 303")
        _, second = await client.send(cancelled(started).decode(), expected="200 302 303 400")
        return first + second


class Busy(AppleLogin):
    """An upstream that has as many requests as it takes."""

    name, interval = "busy", 0.15

    async def once(self, client):
        return await client.route(None, "/busy/quick")


class Full(AppleLogin):
    """An upstream that has as many connections as it takes."""

    name, interval = "full", 0.15

    async def once(self, client):
        return await client.route(None, "/full/quick")


class Narrow(AppleLogin):
    """A route that has as many requests as it takes."""

    name, interval = "narrow", 0.15

    async def once(self, client):
        return await client.route(None, "/narrow/quick")


KINDS = [AppleLogin, WeChatLogin, PasswordLogin, Basic, Refresh, Session, KnownKey, NewKey, Public, Handshake, KeyOfMachine,
         Foreign, Signed, SignIn, Busy, Full, Narrow]


class Results:
    """The results of one kind in one phase: latencies in seconds, and the reasons of failures."""

    def __init__(self):
        self.latencies, self.failures = [], {}

    def failed(self, reason):
        self.failures[reason] = self.failures.get(reason, 0) + 1

    @property
    def count(self):
        return len(self.latencies) + sum(self.failures.values())

    @property
    def success(self):
        return len(self.latencies) / self.count if self.count else 0.0

    def percentile(self, share):
        """In milliseconds; None when nothing succeeded."""
        if not self.latencies:
            return None
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000

    def each_round(self, share):
        return [value for value in [self.percentile(share)] if value is not None]

    def facts(self):
        return {"count": self.count, "success": round(self.success, 4), "failures": self.failures,
                "median_ms": rounded(self.percentile(0.5)), "p99_ms": rounded(self.percentile(0.99))}


class Rounds(Results):
    """The same over the rounds of a phase."""

    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds
        for one in rounds:
            self.latencies += one.latencies
            for reason, count in one.failures.items():
                self.failures[reason] = self.failures.get(reason, 0) + count

    def percentile(self, share):
        """The median over the rounds: one of them may have met a stall of the machine."""
        found = self.each_round(share)
        return statistics.median(found) if found else None

    def each_round(self, share):
        """The same for each round that has a success."""
        return [value for one in self.rounds if (value := one.percentile(share)) is not None]

    def facts(self):
        return super().facts() | {"p99_ms_of_rounds": [rounded(value) for value in self.each_round(0.99)]}


def joined(rounds):
    """The results of all rounds, by the names of the kinds."""
    return {kind: Rounds([one[kind] for one in rounds]) for kind in rounds[0]}


def rounded(value):
    return None if value is None else round(value, 2)


class Probes:
    """All kinds, for one gateway."""

    def __init__(self, gateway, issuer):
        self.client = Client(gateway, issuer)
        self.kinds = [kind() for kind in KINDS]

    async def prepare(self):
        """Logs in where needed, and sends one request of each kind.

        :returns: the results by the names of the kinds.
        :raises Refused: when one is rejected, because later measurements would be meaningless."""
        results = {kind.name: Results() for kind in self.kinds}
        for kind in self.kinds:
            try:
                await asyncio.wait_for(kind.prepare(self.client), TIMEOUT)
                results[kind.name].latencies.append(await asyncio.wait_for(kind.once(self.client), TIMEOUT))
            except (Refused, OSError, TimeoutError) as error:
                raise Refused(f"{kind.name} does not work before any flood: {error!r}") from None
        return results

    async def run(self, seconds):
        """Sends requests for a while.

        :returns: the results by the names of the kinds."""
        results = {kind.name: Results() for kind in self.kinds}
        await asyncio.gather(*(
            self.repeat(kind, results[kind.name], seconds, place / len(self.kinds)) for place, kind in enumerate(self.kinds)))
        return results

    async def repeat(self, kind, results, seconds, phase):
        """One kind at its interval; kinds do not start together. Each is sent at least twice, however short the phase."""
        began = time.perf_counter()
        turn = phase
        while turn * kind.interval < seconds or results.count < 2:
            await asyncio.sleep(began + turn * kind.interval - time.perf_counter())
            try:
                results.latencies.append(await asyncio.wait_for(kind.once(self.client), TIMEOUT))
            except Refused as error:
                results.failed(str(error))
            except TimeoutError:
                results.failed("timeout")
            except OSError as error:
                results.failed(type(error).__name__)
            # A request that took longer than the interval delays the next one; missed ones are not repeated.
            turn = max(turn + 1, (time.perf_counter() - began) / kind.interval)
