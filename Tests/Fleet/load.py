"""The clients: an open loop over kept connections, sessions with a life of their own, and revoked ones that are tried again."""

import asyncio
import collections
import dataclasses
import json
import random
import time

import counting
import fleet as fleets
from processes import Failed

REQUEST_TIMEOUT = 10.0
RATES = {"session": 500, "login": 20, "direct": 50, "refresh": 8, "revoke": 15, "probe": 30}
SESSIONS = 300
IDENTITIES = 20
# A session whose access token has less than this to live is refreshed first.
REFRESH_BEFORE = 20.0
AT_ONCE = 3000


@dataclasses.dataclass
class Session:
    access: str
    refresh: str
    created: float
    renewed: float
    is_busy: bool = False
    revoked: float = 0.0


class Connection:
    """One kept connection; a response at a time."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.uses = reader, writer, 0

    async def exchange(self, data):
        self.writer.write(data)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        if "content-length" in fields:
            body = await self.reader.readexactly(int(fields["content-length"]))
        elif fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        else:
            body = b""
        self.uses += 1
        return int(lines[0].split()[1]), fields, body


class Client:
    """Requests to one address, over as many connections as are needed at a time."""

    def __init__(self, port):
        self.port, self.idle = port, []

    async def send(self, method, path, fields=(), body=b""):
        """:returns: status, fields and body; the status is a text where there was no response."""
        lines = [f"{method} {path} HTTP/1.1", "Host: fleet.test", *(f"{name}: {value}" for name, value in fields)]
        if method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        data = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
        try:
            return await asyncio.wait_for(self._send(data), REQUEST_TIMEOUT)
        except asyncio.TimeoutError:
            return "timeout", {}, b""
        except (OSError, ValueError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            return f"connection ({type(error).__name__})", {}, b""

    async def _send(self, data):
        while True:
            connection = self.idle.pop() if self.idle else None
            is_used = connection is not None
            if connection is None:
                connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port))
            try:
                found = await connection.exchange(data)
            except asyncio.IncompleteReadError as error:
                connection.writer.close()
                # A kept connection that ended before the response began: every client repeats such a request.
                if is_used and not error.partial:
                    continue
                raise
            except (ConnectionResetError, BrokenPipeError):
                connection.writer.close()
                if is_used:
                    continue
                raise
            except BaseException:
                connection.writer.close()
                raise
            if found[1].get("connection") == "close":
                connection.writer.close()
            else:
                self.idle.append(connection)
            return found


class Load:
    """All kinds of requests of a fleet's users, and what came of them."""

    def __init__(self, fleet, rates=None):
        self.fleet, self.rates = fleet, dict(RATES | (rates or {}))
        self.client, self.apple = Client(fleet.front), Client(fleet.apple)
        self.log, self.copies = counting.Log(), counting.Copies(fleets.CACHE_TTL - 0.05)
        self.live, self.revoked, self.identities = [], collections.deque(maxlen=20_000), []
        self.violations, self.late, self.lost = [], [], []
        # What the gateways said with each 503.
        self.codes = collections.Counter()
        # When a session was not served from a copy that must exist: the instance, and the copy's age.
        self.copies_unused = []
        self.faults, self.running, self.number, self.under_way = [], True, 0, 0
        self.tasks = set()

    # Sending

    def address(self):
        """Of a client; budgets of networks are not what is measured here."""
        self.number += 1
        number = self.number
        return ("X-Forwarded-For", f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")

    async def post(self, path, members):
        return await self.client.send("POST", path, [self.address()], json.dumps(members).encode())

    async def get(self, token):
        return await self.client.send("GET", "/v1/orders", [self.address(), ("Authorization", f"Bearer {token}")])

    def count(self, kind, scheduled, status, fields, body=b""):
        name = counting.outcome(status, fields) if isinstance(status, int) else status
        detail = f"{fields.get('x-instance', '')} {body[:160].decode(errors='replace')}" if name not in ("ok", "503") else ""
        if name == "503":
            self.codes[kind, fields.get("x-instance", ""), body[:120].decode(errors="replace")] += 1
        self.log.add(scheduled, time.monotonic(), kind, name, detail)
        return name

    def may_be_lost(self, session):
        """A login that was acknowledged right before a switch may be lost; a fault begins the time of one."""
        return any(began - 1.0 <= session.created <= ended for began, ended in self.fault_times())

    def is_failing(self, now):
        """While a master is missing, a gateway may respond from an older copy: nothing is known to be read then."""
        return any(began <= now and (not ended or now < ended + 2.0) for began, ended in self.faults)

    def fault_times(self):
        return [(began, ended if ended else time.monotonic()) for began, ended in self.faults]

    # Kinds

    async def session(self, scheduled):
        now = time.monotonic()
        session = None
        for _ in range(8):
            candidate = random.choice(self.live) if self.live else None
            if candidate and now < candidate.renewed + fleets.ACCESS_TTL - 5.0 and not candidate.revoked:
                session = candidate
                break
        if not session:
            return self.log.add(scheduled, time.monotonic(), "idle", "ok")
        token, sent = session.access, time.monotonic()
        status, fields, body = await self.get(token)
        finished, instance = time.monotonic(), fields.get("x-instance", "")
        if session.revoked:
            # It was revoked while the request was under way; both responses are right.
            return self.log.add(scheduled, finished, "idle", "ok")
        kind = "cached" if self.copies.is_inside(token, instance, finished) else "session"
        if status == 200 and self.is_failing(sent):
            self.copies.served_while_failing(token, instance)
        elif status == 200:
            self.copies.served(token, instance, sent)
        if status == 401 and self.may_be_lost(session):
            self.log.add(scheduled, finished, "lost", "ok")
            return self.lose(session)
        age = f" opened {finished - session.created:.1f} s, renewed {finished - session.renewed:.1f} s before".encode()
        name = self.count(kind, scheduled, status, fields, body[:110] + age if status == 401 else body)
        if kind == "cached" and name != "ok":
            self.copies_unused.append((finished, instance, finished - self.copies.read[token, instance]))
        if status == 401:
            self.drop(session)

    def lose(self, session):
        """Remembers when a lost session was opened, seen from the fault that is nearest."""
        self.lost.append((time.monotonic(), min((session.created - one[0] for one in self.faults), key=abs)))
        self.drop(session)

    def forget(self, token):
        self.copies.forget(token, [instance.address for instance in self.fleet.instances])

    def drop(self, session):
        if session in self.live:
            self.live.remove(session)
        self.forget(session.access)

    async def login(self, scheduled):
        if self.number % 2:
            status, fields, body = await self.post(
                "/auth/login/password", {"username": random.choice(fleets.USERS), "password": fleets.PASSWORD})
            kind = "login password"
        else:
            token = await self.identity(f"login{random.randrange(200)}")
            scheduled = max(scheduled, time.monotonic())
            status, fields, body = await self.post("/auth/login/apple", {"identity_token": token})
            kind = "login apple"
        self.count(kind, scheduled, status, fields, body)
        if status == 200:
            self.add(json.loads(body))

    def add(self, members):
        now = time.monotonic()
        self.live.append(Session(members["access_token"], members["refresh_token"], now, now))

    async def identity(self, subject):
        """An identity token of the simulated Apple."""
        members = {"audience": "com.example.app", "subject": subject, "email": f"{subject}@example.com"}
        _, _, body = await self.apple.send("POST", "/simulator/token", (), json.dumps(members).encode())
        return json.loads(body)["identity_token"]

    async def direct(self, scheduled):
        status, fields, body = await self.get(random.choice(self.identities))
        self.count("direct", scheduled, status, fields, body)

    async def refresh(self, scheduled):
        now = time.monotonic()
        due = [one for one in self.live if not one.is_busy and not one.revoked]
        session = min(due, key=lambda one: one.renewed, default=None)
        if not session or now < session.renewed + fleets.ACCESS_TTL / 4:
            return
        session.is_busy = True
        status, fields, body = await self.post("/auth/refresh", {"refresh_token": session.refresh})
        session.is_busy = False
        if status == 401 and self.may_be_lost(session):
            return self.lose(session)
        self.count("refresh", scheduled, status, fields, body)
        if status == 200:
            members = json.loads(body)
            self.forget(session.access)
            session.access, session.refresh, session.renewed = members["access_token"], members["refresh_token"], now
        elif status == 401:
            self.drop(session)
        else:
            session.renewed += 0.5

    async def revoke(self, scheduled):
        if len(self.live) <= SESSIONS:
            return
        session = next((one for one in self.live if not one.is_busy and not one.revoked), None)
        if not session:
            return
        session.is_busy = True
        session.revoked = time.monotonic()
        status, fields, body = await self.post("/auth/revoke", {"token": session.refresh})
        name = self.count("revoke", scheduled, status, fields, body)
        if name == "ok":
            session.revoked = time.monotonic()
            self.drop(session)
            self.revoked.append(session)
        else:
            # The client repeats it later; until then nothing is known of the session.
            session.is_busy = False
            session.revoked = 0.0

    async def probe(self, scheduled):
        """Tries a session that was revoked more than a second ago."""
        known = [one for one in self.revoked if time.monotonic() > one.revoked + 1.0] if len(self.revoked) < 50 else None
        session = random.choice(known or [self.revoked[random.randrange(len(self.revoked))]]) if self.revoked else None
        if session and time.monotonic() > session.revoked + 1.0:
            await self.try_revoked(session, scheduled)

    async def try_revoked(self, session, scheduled, with_refresh=False):
        """An accepted refresh token is a violation at once, an access token beyond `access_ttl`."""
        if with_refresh:
            status, fields, _ = await self.post("/auth/refresh", {"refresh_token": session.refresh})
        else:
            status, fields, _ = await self.get(session.access)
        age = time.monotonic() - session.revoked
        if status == 200:
            self.late.append((time.monotonic(), age, with_refresh))
            self.log.add(scheduled, time.monotonic(), "revoked", "accepted", f"{age:.1f} s after it was revoked")
            if with_refresh or age > fleets.ACCESS_TTL + 2.0:
                self.violations.append((time.monotonic(), age, with_refresh))
        elif status == 401:
            self.log.add(scheduled, time.monotonic(), "revoked", "ok")
        else:
            self.count("revoked", scheduled, status, fields)
        return status

    async def sweep(self, since=0.0):
        """Tries every revoked session with both of its tokens; :returns: how many were tried."""
        sessions = [one for one in self.revoked if one.revoked >= since and time.monotonic() > one.revoked + 1.0]
        for start in range(0, len(sessions), 20):
            now = time.monotonic()
            await asyncio.gather(*(self.try_revoked(one, now) for one in sessions[start:start + 20]))
            await asyncio.gather(*(self.try_revoked(one, now, True) for one in sessions[start:start + 20]))
        return len(sessions)

    # Running

    async def prepare(self):
        self.identities = [await self.identity(f"direct{number}") for number in range(IDENTITIES)]
        for _ in range(20):
            await asyncio.gather(*(self.login(time.monotonic()) for _ in range(20)))
            if len(self.live) >= SESSIONS:
                return
        raise Failed(f"logins fail: {list(self.log.examples)[-3:]}")

    async def run(self):
        """Sends each kind at its rate, whatever the responses take."""
        began, sent = time.monotonic(), collections.Counter()
        while self.running:
            now = time.monotonic()
            for kind, rate in self.rates.items():
                for _ in range(counting.due(rate, began, now, sent[kind])):
                    self.start(kind, counting.moment(rate, began, sent[kind]))
                    sent[kind] += 1
            await asyncio.sleep(0.002)

    def start(self, kind, scheduled):
        if len(self.tasks) >= AT_ONCE:
            return self.log.add(scheduled, time.monotonic(), kind, "not sent")
        task = asyncio.create_task(getattr(self, kind)(scheduled))
        self.tasks.add(task)
        task.add_done_callback(self.finished)

    def finished(self, task):
        self.tasks.discard(task)
        if not task.cancelled() and task.exception():
            self.log.add(time.monotonic(), time.monotonic(), "generator", repr(task.exception())[:100])

    async def stop(self):
        self.running = False
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
