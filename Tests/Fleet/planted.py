"""What a gateway believes of a Redis that others may write to: records, keys and messages, planted and altered.

The attacker has a gateway of the same version with a Redis and an issuer of its own, and can write to the victim's
Redis. It has no key of the victim's seal.
"""

import asyncio
import json
import socket
import time

import counting
import load
import redis_nodes
from processes import Failed

PREFIX = "martlet:"


def kind_of(name):
    """The kind of a field of a session: parts and generations are numbered; pure."""
    text = name.decode(errors="replace")
    if text.endswith("d") and text[:-1].isdigit():
        return "record part"
    return text.split(":")[0]


def flipped(value):
    """The value with one bit of its middle changed; pure."""
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1:]


class Store:
    """One Redis server."""

    def __init__(self, port):
        self.port = port

    def call(self, *words):
        return redis_nodes.call(self.port, *words)

    def keys(self, pattern):
        return sorted(self.call("KEYS", PREFIX + pattern))

    def fields(self, key):
        flat = self.call("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2]))

    def copy_to(self, other, pattern):
        """Writes everything of the pattern to another server, in the place of what is there."""
        found = self.keys(pattern)
        for key in found:
            other.call("RESTORE", key, "0", self.call("DUMP", key), "REPLACE")
        return len(found)


class Planted:
    """An attacker's fleet and a victim's."""

    def __init__(self, victim, attacker):
        self.victim, self.attacker = victim, attacker
        self.store, self.other = (Store(one.store.nodes[0].port) for one in (victim, attacker))
        self.clients, self.strangers = load.Load(victim), load.Load(attacker)

    async def login(self, clients, subject):
        members = {"identity_token": await clients.identity(subject), "device_name": "phone"}
        status, _, body = await clients.post("/auth/login/apple", members)
        if status != 200:
            raise Failed(f"login: {status} {body[:200]}")
        return json.loads(body)

    async def outcome(self, session):
        """What the victim says to both tokens, the access token first."""
        first, _, _ = await self.clients.get(session["access_token"])
        second, _, _ = await self.clients.post("/auth/refresh", {"refresh_token": session["refresh_token"]})
        return f"{first}/{second}"

    def bad_seals(self):
        pages = [counting.read_metrics(one.metrics()) for one in self.victim.instances]
        return sum(counting.total(page, "martlet_store_bad_seal_total") or 0 for page in pages)

    async def session_of_a_stranger(self):
        session = await self.login(self.strangers, "victim")
        self.other.copy_to(self.store, "{*")
        return await self.outcome(session)

    async def open(self, subject):
        """A session of the victim, and its key."""
        before = set(self.store.keys("{*}:s*"))
        session = await self.login(self.clients, subject)
        [key] = set(self.store.keys("{*}:s*")) - before
        return session, key

    async def record_of_another_session(self):
        """The record of another session in one's own: to be another user."""
        mine, key = await self.open("mine")
        _, other = await self.open("theirs")
        for name, value in self.store.fields(other).items():
            if kind_of(name) in ("d", "record part", "o", "m"):
                self.store.call("HSET", key, name, value)
        return await self.outcome(mine)

    async def altered_fields(self):
        """Each field of a session with one bit changed. :returns: outcomes by kind of field."""
        session, key = await self.open("altered")
        whole, seen = self.store.call("DUMP", key), {}
        for name, value in sorted(self.store.fields(key).items()):
            if not value:
                continue
            self.store.call("HSET", key, name, flipped(value))
            status, _, _ = await self.clients.get(session["access_token"])
            seen.setdefault(kind_of(name), set()).add(status)
            self.store.call("RESTORE", key, "0", whole, "REPLACE")
        far = str(int(time.time() * 1000) + 400 * 86_400_000)
        for name in (b"x", b"s"):
            self.store.call("HSET", key, name, far)
        seen["expiry far away"] = {(await self.clients.get(session["access_token"]))[0]}
        return ", ".join(f"{kind} {'/'.join(map(str, sorted(found)))}" for kind, found in sorted(seen.items()))

    async def keys_of_an_issuer(self):
        """The attacker's issuer in the place of the victim's, whose own cannot be reached after a restart."""
        await self.strangers.get(await self.strangers.identity("warm"))
        [planted] = [key for key in self.other.keys("jwks:*") if key.count(b":") == 2]
        [own] = [key for key in self.store.keys("jwks:*") if key.count(b":") == 2]
        value = self.other.call("GET", planted)
        forged = await self.strangers.identity("anyone")
        self.victim.simulator.end()
        for instance in self.victim.instances:
            instance.process.end()
        self.store.call("SET", own, value)
        for instance in self.victim.instances:
            instance.process.start()
            instance.process.await_port(instance.port)
        await asyncio.sleep(1)
        return str((await self.clients.get(forged))[0])

    async def forged_messages(self):
        """Messages that end every cached decision. :returns: how many were heeded."""
        before = self.bad_seals()
        for message in ("0123456789abcdef", "verdicts", "changed:0123456789abcdef"):
            self.store.call("PUBLISH", PREFIX + "revoked", message)
        await asyncio.sleep(0.5)
        dropped = self.bad_seals() - before
        return f"{dropped:.0f} dropped of {3 * len(self.victim.instances)} received"

    async def filled(self):
        """A store full of the attacker's records: nothing grows, nothing is slower."""
        session = await self.login(self.clients, "among many")
        memory = [one.resources.resident for one in self.victim.instances]
        template = self.store.call("DUMP", self.store.keys("{*}:s*")[0])
        with socket.create_connection(("127.0.0.1", self.store.port)) as connection, connection.makefile("rb") as stream:
            for start in range(0, 50_000, 1000):
                words = [[b"RESTORE", b"martlet:{%d}:s:%d" % (n % 64, n), b"0", template, b"REPLACE"]
                         for n in range(start, start + 1000)]
                connection.sendall(b"".join(
                    b"*%d\r\n" % len(one) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in one) for one in words))
                for _ in words:
                    redis_nodes.read_reply(stream)
        seen = await self.outcome(session)
        after = [one.resources.resident for one in self.victim.instances]
        return f"{seen}, memory {memory} → {after} MiB"


async def rows(victim, attacker):
    """What was tried, what came of it, and how many values did not verify."""
    planted, found = Planted(victim, attacker), []
    for name, attempt in (
            ("a session of a stranger's making", planted.session_of_a_stranger),
            ("another session's record in one's own", planted.record_of_another_session),
            ("a field with one bit changed", planted.altered_fields),
            ("50,000 planted records", planted.filled),
            ("forged messages", planted.forged_messages),
            ("keys of a stranger's issuer", planted.keys_of_an_issuer)):
        before = planted.bad_seals()
        seen = await attempt()
        after = planted.bad_seals()
        # Gateways that were restarted count from zero.
        found.append((name, seen, after - before if after >= before else after))
    return found


def judge(found, is_sealed):
    """What must not have been believed, by the rows; pure."""
    seen, wrong = {name: outcome for name, outcome, _ in found}, []
    refused = {"a session of a stranger's making": "401/401", "keys of a stranger's issuer": "503"}
    for name, expected in refused.items():
        if is_sealed and seen[name] != expected:
            wrong.append(f"{name}: {seen[name]}, not {expected}")
    if seen["another session's record in one's own"].startswith("200"):
        wrong.append("another session's record was believed")
    return wrong
