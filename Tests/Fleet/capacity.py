"""What a fleet costs and believes: round trips, throughput for each core, many sessions, many accounts, forgeries."""

import asyncio
import collections
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time

import copying
import counting
import fleet as fleets
import load
import measures
import planted
import processes
import redis_nodes
from processes import Failed, Unavailable

# Sent by every client to keep its connections and its map; no operation waits for them.
UPKEEP = {"PING", "ROLE", "CLUSTER", "INFO", "REPLCONF", "CLIENT", "SELECT", "MONITOR", "SUBSCRIBE", "AUTH", "DBSIZE"}
MONITORED = re.compile(rb'^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"]*)"')
# Of each operation; of each trial of the scale; a trial's time in seconds.
OPERATIONS, ROUNDS, TRIAL = 50, 3, 6
SCALE_SESSIONS, CONNECTIONS = 2000, 32
# A password login from a new address sends six commands, two pairs of them together: it waits four times.
BOUNDS = {"session miss": 1, "login apple": 4, "login password": 6, "refresh": 2}
SUBJECTS, CAP, PROBE = 20_000, 100, 100
MEASURES = ("trips", "scale", "many", "copy", "planted")
BYTES = 1536
CYCLE = """local requests, current = {}, 0
for line in io.lines("%s") do
  local method, path, fields, body = line:match("^(%%S+) (%%S+) (%%S+) ?(.*)$")
  local headers = {}
  for name, value in fields:gmatch("([^=,]+)=([^,]+)") do headers[name] = value:gsub("~", " ") end
  requests[#requests + 1] = {method, path, headers, body ~= "" and body or nil}
end
local number = %d
request = function()
  current, number = current %% #requests + 1, number + 1
  local one = requests[current]
  one[3]["X-Forwarded-For"] = string.format("10.%%d.%%d.%%d", number / 65536 %% 256, number / 256 %% 256, number %% 256)
  return wrk.format(one[1], one[2], one[3], one[4])
end
local failed = 0
response = function(status) if status ~= 200 then failed = failed + 1 end end
done = function(summary)
  local errors = summary.errors
  io.write(string.format("SEEN %%d %%d %%d\\n", summary.requests,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout, summary.duration))
end
"""


def command_of(line):
    """The client and the command of a line of `MONITOR`; None for what a script did, and for other lines; pure."""
    found = MONITORED.match(line)
    if not found or found[1] == b"lua":
        return None
    return found[1].decode(), found[2].decode(errors="replace").upper()


def trips(commands, operations):
    """Round trips of an operation; pure. `WAIT` is sent together with the write before it."""
    sent = collections.Counter(name for name in commands if name not in UPKEEP)
    return sum(count for name, count in sent.items() if name != "WAIT") / operations, sent


class Monitor:
    """Reads `MONITOR` of several servers."""

    def __init__(self, ports):
        self.commands, self.sockets = [], []
        for port in ports:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(b"MONITOR\r\n")
            self.sockets.append(connection)
            threading.Thread(target=self.read, args=(connection.makefile("rb"),), daemon=True).start()

    def read(self, stream):
        try:
            for line in stream:
                if found := command_of(line):
                    self.commands.append(found[1])
        except (OSError, ValueError):
            pass

    def take(self):
        # What was sent right before is on the way.
        time.sleep(0.3)
        taken, self.commands = self.commands, []
        return taken

    def close(self):
        for connection in self.sockets:
            connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def masters(store):
    return [store.master(shard + 1) for shard in range(store.shards)]


def used_memory(store):
    return sum(int(redis_nodes.info(node.port, "memory", 10)["used_memory"]) for node in masters(store))


def database(accounts):
    """Committed transactions of PostgreSQL's primary, and the bytes that it has logged."""
    primary = accounts.of("primary")
    # Statistics of a session are published when it is idle.
    time.sleep(1)
    text = primary.ask("SELECT sum(xact_commit), pg_current_wal_lsn() - '0/0' FROM pg_stat_database WHERE datname = 'martlet'"
                       " GROUP BY 2")
    return [float(word) for word in text.split("|")]


def processor_seconds(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Generator:
    """wrk, which repeats a list of requests."""

    def __init__(self, folder, name, requests):
        """:param requests: method, path, fields without tildes or commas, and body."""
        self.file, self.script, self.number = folder / f"{name}.requests", folder / f"{name}.lua", 0
        with open(self.file, "w") as output:
            for method, path, fields, body in requests:
                written = ",".join(f"{key}={value.replace(' ', '~')}" for key, value in fields.items())
                output.write(f"{method} {path} {written} {body}\n")

    def start(self, port, seconds, connections=CONNECTIONS):
        self.script.write_text(CYCLE % (self.file, self.number))
        self.number += 1_000_000
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(self.script),
                   f"http://127.0.0.1:{port}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def finish(child):
        """:returns: responses, failures and seconds."""
        text = child.communicate(timeout=120)[0]
        found = re.search(r"^SEEN (\d+) (\d+) (\d+)$", text, re.MULTILINE)
        if not found:
            raise Failed(f"wrk: {text[-400:]}")
        return int(found[1]), int(found[2]), int(found[3]) / 1e6


class Capacity:
    """Takes the measures; each has fleets of its own."""

    def __init__(self, binary, folder, sessions, is_sealed):
        self.binary, self.folder, self.sessions, self.is_sealed = binary, folder, sessions, is_sealed
        self.rows, self.logins = [], 0

    def fleet(self, topology, name, **options):
        folder = self.folder / name
        folder.mkdir()
        made = fleets.Fleet(self.binary, topology, folder, is_sealed=self.is_sealed, **options)
        made.start()
        return made

    def note(self, name, asked, seen, wrong):
        self.rows.append((name + (", sealed" if self.is_sealed else ""), asked, seen, wrong))
        print(measures.table(self.rows[-1:]), flush=True)

    async def login(self, clients, subject=None):
        """A new session's tokens."""
        if subject is None:
            # In turn: attempts of one user at the same time are limited.
            self.logins += 1
            user = fleets.USERS[self.logins % len(fleets.USERS)]
            status, _, body = await clients.post("/auth/login/password", {"username": user, "password": fleets.PASSWORD})
        else:
            status, _, body = await clients.post("/auth/login/apple", {"identity_token": subject})
        if status != 200:
            raise Failed(f"login: {status} {body[:200]}")
        return json.loads(body)

    async def renew(self, clients, session):
        status, _, body = await clients.post("/auth/refresh", {"refresh_token": session["refresh_token"]})
        if status != 200:
            raise Failed(f"refresh: {status} {body[:200]}")
        session |= json.loads(body)

    async def trips(self):
        made = self.fleet("cluster", "trips", cache_ttl=0)
        clients = load.Load(made)
        # Each gateway has fetched the issuer's keys before it is counted.
        identities = [await clients.identity(f"trips{number}") for number in range(OPERATIONS)]
        for _ in range(6):
            await self.login(clients, await clients.identity("warm"))
            await self.login(clients)
        monitor = Monitor([node.port for node in masters(made.store)])
        seen, wrong = [], []
        sessions = []

        async def count(name, operation, items):
            monitor.take()
            before = database(made.accounts)
            for item in items:
                await operation(item)
            found, sent = trips(monitor.take(), len(items))
            commands = ", ".join(f"{word} {count / len(items):.2f}" for word, count in sorted(sent.items()))
            spent = [(new - old) / len(items) for old, new in zip(before, database(made.accounts))]
            if max(spent) > 0.5:
                commands += f"; PostgreSQL: {spent[0]:.1f} transactions, {spent[1]:,.0f} bytes of WAL"
            seen.append(f"{name} {found:.2f} ({commands})")
            if name in BOUNDS and found > BOUNDS[name] + 0.1:
                wrong.append(f"{name}: {found:.2f} round trips, at most {BOUNDS[name]}")

        async def opened(identity):
            sessions.append(await self.login(clients, identity))

        async def used(session):
            status, _, body = await clients.get(session["access_token"])
            if status != 200:
                raise Failed(f"session: {status} {body[:200]}")

        async def refreshed(session):
            await self.renew(clients, session)

        async def revoked(session):
            status, _, body = await clients.post("/auth/revoke", {"token": session["refresh_token"]})
            if status not in (200, 204):
                raise Failed(f"revoke: {status} {body[:200]}")

        await count("login apple", opened, identities)
        await count("login apple again", opened, identities)
        await count("login password", opened, [None] * OPERATIONS)
        await count("session miss", used, sessions)
        await count("refresh", refreshed, sessions)
        await count("revocation", revoked, sessions)
        monitor.close()
        self.note("round trips to Redis, counted at three masters", "session miss 1, login at most 4 (a password: six commands, four waits), refresh at most 2",
                  "; ".join(seen), wrong)

    async def scale(self):
        made = {1: self.fleet("single", "one", cache_ttl=0), 3: self.fleet("cluster", "three", cache_ttl=0)}
        generators, opened = {}, {}
        for count, one in made.items():
            clients = load.Load(one)
            tokens = []
            for _ in range(0, SCALE_SESSIONS, 20):
                tokens += await asyncio.gather(*(self.login(clients) for _ in range(20)))
            opened[count] = clients, tokens
        found = collections.defaultdict(list)
        # One loop of a gateway: at most a core each.
        for _ in range(ROUNDS):
            for count, one in made.items():
                clients, tokens = opened[count]
                # Access tokens live for a minute.
                for start in range(0, len(tokens), 20):
                    await asyncio.gather(*(self.renew(clients, token) for token in tokens[start:start + 20]))
                requests = [("GET", "/v1/orders", {"Authorization": f"Bearer {token['access_token']}"}, "")
                            for token in tokens]
                generators[count] = [Generator(one.folder, f"load{number}", requests) for number in (1, 2)]
                for instances in (1, 2):
                    found[count, instances].append(
                        self.trial(one.instances[:instances], generators[count], masters(one.store)))
        seen, wrong, first = [], [], None
        for (count, instances), trials in found.items():
            rate, core = (statistics.median(trial[index] for trial in trials) for index in (0, 1))
            first = first or core
            store = statistics.median(trial[3] for trial in trials)
            text = f"{count} master{'s' * (count > 1)}, {instances} instance{'s' * (instances > 1)}"
            seen.append(f"{text}: {rate:,.0f} a second, {core:,.0f} for each second of Martlet's processor time, "
                        f"{store:,.0f} for each of Redis")
            if abs(core / first - 1) > 0.1:
                wrong.append(f"{text}: {core / first:.2f} of the first")
            failed = sum(trial[2] for trial in trials)
            if failed:
                wrong.append(f"{text}: {failed} failed")
        self.note("sessions a second, each read from Redis", "throughput per core of Martlet within 10 %", "; ".join(seen), wrong)

    def trial(self, instances, generators, nodes):
        before = [processor_seconds(one.process.pid) for one in instances]
        redis = [processor_seconds(node.process.pid) for node in nodes]
        running = [generator.start(one.port, TRIAL) for one, generator in zip(instances, generators)]
        seen = [Generator.finish(child) for child in running]
        spent = sum(processor_seconds(one.process.pid) - old for one, old in zip(instances, before))
        store = sum(processor_seconds(node.process.pid) - old for node, old in zip(nodes, redis))
        responses = sum(one[0] for one in seen)
        return (responses / max(one[2] for one in seen), responses / spent, sum(one[1] for one in seen),
                responses / max(store, 0.01))

    async def many(self):
        made = self.fleet("cluster", "many", cap=CAP)
        clients = load.Load(made)
        probes = [await clients.identity("probe-small"), await clients.identity("probe-large")]
        subjects = []
        for start in range(0, SUBJECTS, 50):
            subjects += await asyncio.gather(*(clients.identity(f"person{start + number}") for number in range(50)))
        small = await self.probe(clients, probes[0])
        before, opened, failed = used_memory(made.store), 0, 0
        requests = [("POST", "/auth/login/apple", {"Content-Type": "application/json"},
                     json.dumps({"identity_token": one}, separators=(",", ":"))) for one in subjects]
        generators = [Generator(made.folder, f"load{number}", requests) for number in (1, 2)]
        began = time.monotonic()
        while opened < self.sessions:
            running = [generator.start(one.port, 10) for one, generator in zip(made.instances, generators)]
            for responses, errors, _ in map(Generator.finish, running):
                opened, failed = opened + responses - errors, failed + errors
            print(f"{time.monotonic() - began:6.0f} s  {opened:,} sessions, {failed} failed", flush=True)
            if failed > 1000:
                raise Failed("logins fail")
        # wrk does not count responses that arrive after its end, so sessions are counted in Redis.
        held = sum(count_sessions(node.port) for node in masters(made.store))
        each = (used_memory(made.store) - before) / held
        large = await self.probe(clients, probes[1])
        wrong = [f"{each:.0f} bytes"] if each > BYTES else []
        if failed:
            wrong.append(f"{failed} logins failed")
        for name in small:
            if large[name] > 2 * small[name] + 0.002:
                wrong.append(f"{name}: {large[name] * 1000:.1f} ms")
        times = "; ".join(f"{name} {small[name] * 1000:.2f} → {large[name] * 1000:.2f} ms" for name in small)
        self.note(f"{held:,} sessions of {SUBJECTS:,} subjects", f"at most {BYTES} bytes each; list, revoke, cap as before",
                  f"{each:.0f} bytes each, all counted; medians of an almost empty and of the full store: {times}", wrong)

    async def copy(self):
        """A million accounts by default, as many as there are sessions."""
        folder = self.folder / "copy"
        folder.mkdir(mode=0o755)
        seen, wrong = await asyncio.to_thread(copying.measure, self.binary, folder, self.sessions)
        self.note(f"{self.sessions:,} accounts copied from SQLite to PostgreSQL",
                  "a killed run is continued, both databases are the same", seen, wrong)

    async def planted(self):
        attacker = self.fleet("single", "attacker", cache_ttl=0)
        for is_sealed in (False, True):
            self.is_sealed = is_sealed
            victim = self.fleet("single", f"victim{int(is_sealed)}", cache_ttl=0)
            found = await planted.rows(victim, attacker)
            self.note("planted and altered records, keys and messages",
                      "access token/refresh token; with a seal nothing of it is believed",
                      "; ".join(f"{name}: {outcome} ({count:.0f} did not verify)" for name, outcome, count in found),
                      planted.judge(found, is_sealed))

    async def probe(self, clients, identity):
        """Medians, in seconds, for a subject with as many sessions as it may have."""
        sessions = [await self.login(clients, identity) for _ in range(PROBE)]
        found = collections.defaultdict(list)

        async def timed(name, request):
            began = time.monotonic()
            response = await request
            found[name].append(time.monotonic() - began)
            if response[0] not in (200, 204):
                raise Failed(f"{name}: {response[0]} {response[2][:200]}")
            return response

        for _ in range(20):
            # Ends the oldest one.
            _, _, body = await timed("login at the cap", clients.post("/auth/login/apple", {"identity_token": identity}))
            sessions.append(json.loads(body))
            fields = [clients.address(), ("Authorization", f"Bearer {sessions[-1]['access_token']}")]
            await timed("list", clients.client.send("GET", "/auth/sessions", fields))
        for session in sessions[-20:]:
            await timed("revoke", clients.post("/auth/revoke", {"token": session["refresh_token"]}))
        return {name: statistics.median(times) for name, times in found.items()}


def count_sessions(port):
    """Keys of sessions at a server."""
    cursor, count = b"0", 0
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection, connection.makefile("rb") as stream:
        while True:
            words = [b"SCAN", cursor, b"MATCH", b"martlet:{*}:s*", b"COUNT", b"10000"]
            connection.sendall(b"*6\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            cursor, keys = redis_nodes.read_reply(stream)
            count += len(keys)
            if cursor == b"0":
                return count


def measure(binary, only, sessions, is_sealed):
    """Takes the measures with the given names, or all. :returns: the exit code."""
    rows = []
    for name in MEASURES:
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="martlet-fleet-") as folder:
            path = pathlib.Path(folder)
            # PostgreSQL runs as another user in it.
            path.chmod(0o755)
            capacity = Capacity(binary, path, sessions, is_sealed)
            try:
                asyncio.run(getattr(capacity, name)())
            except (Failed, OSError) as error:
                capacity.note(name, "the measure ends", f"{type(error).__name__}: {error}", ["it did not end"])
            finally:
                processes.end_all()
            rows += capacity.rows
    if not rows:
        raise Unavailable(f"--capacity: the measures are {', '.join(MEASURES)}")
    print("\n" + measures.table(rows))
    return 1 if any(row[3] for row in rows) else 0
