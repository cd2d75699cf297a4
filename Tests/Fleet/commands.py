"""The commands of standard input and `--do`: parsed here, and done to a fleet."""

import asyncio
import time

import load
import redis_nodes
from processes import Failed, wait_until

HELP = """kill master [N]       SIGKILL the master of shard N (1)
restart, heal         start what was killed again; PostgreSQL's old primary becomes a replica
partition [S] [N]     SIGSTOP the master of shard N, SIGCONT after S seconds (10)
failover [N]          a planned change of shard N's master
reshard [N]           move N slots (1000) from shard 1 to shard 2 under load
promote [keep]        stop PostgreSQL's primary (keep: leave it) and promote the replica
upgrade BINARY        restart the gateways with another program, one by one
rotate                a new key of the store's seal: first beside the old one, then before it (needs --seal)
wait S, status, help, quit"""
NUMBERS = {"wait": 1, "partition": 10, "failover": 1, "reshard": 1000}


class BadCommand(Exception):
    """A line that is no command."""


def parse(line):
    """The commands of a line, separated by `;`, as tuples of a name and its arguments."""
    return [parse_one(part.split()) for part in line.split(";") if part.strip()]


def parse_one(words):
    name, rest = words[0], words[1:]
    if words[:2] == ["kill", "master"]:
        return "kill", whole_number(words[2] if words[2:] else 1)
    if name in ("restart", "heal") and not rest:
        return ("heal",)
    if name == "partition" and len(rest) <= 2:
        return "partition", whole_number(rest[0] if rest else 10), whole_number(rest[1] if rest[1:] else 1)
    if name in NUMBERS and len(rest) <= 1:
        return name, whole_number(rest[0] if rest else NUMBERS[name])
    if name == "promote" and rest in ([], ["keep"]):
        return "promote", not rest
    if name == "upgrade" and len(rest) == 1:
        return "upgrade", rest[0]
    if name in ("rotate", "status", "help", "quit") and not rest:
        return (name,)
    raise BadCommand(f"'{' '.join(words)}' is no command; help lists them")


def parse_rates(text):
    """Rates by kind, as `--rates` has them."""
    rates = dict(part.partition("=")[::2] for part in text.split(",") if part)
    for kind in set(rates) - set(load.RATES):
        raise BadCommand(f"'{kind}' is none of {', '.join(load.RATES)}")
    return {kind: whole_number(rate) for kind, rate in rates.items()}


def whole_number(text):
    try:
        return int(text)
    except ValueError:
        raise BadCommand(f"'{text}' is no number") from None


class Operator:
    """Does commands one after the other; those that block run in a thread of their own."""

    def __init__(self, fleet, clients, tell):
        self.fleet, self.load, self.tell = fleet, clients, tell

    async def do(self, command):
        """:returns: False where it was `quit`."""
        name, *arguments = command
        if name == "quit":
            return False
        if name == "wait":
            await asyncio.sleep(arguments[0])
        elif name == "help":
            self.tell(HELP)
        elif name == "status":
            self.tell("; ".join(f"{node.name} {node.role}" for node in self.fleet.store.nodes))
        else:
            try:
                await getattr(self, name)(*arguments)
            except (Failed, OSError, redis_nodes.ReplyError) as error:
                self.tell(f"{name}: {error}")
        return True

    def check(self, shard):
        master = self.fleet.store.master(shard) if 1 <= shard <= self.fleet.store.shards else None
        if not master:
            raise Failed(f"shard {shard} has no master")
        return master

    async def switch(self, shard, begin, end=lambda: None):
        """A fault that ends with another master. :returns: when it began and when the next master was there."""
        store = self.fleet.store
        master = await asyncio.to_thread(self.check, shard)
        fault = [time.monotonic(), None]
        self.load.faults.append(fault)
        await asyncio.to_thread(begin, master)
        if store.kind != "single":
            fault[1] = await asyncio.to_thread(redis_nodes.wait_for_master, store, shard, master)
            self.tell(f"shard {shard}: {master.name} was followed after {fault[1] - fault[0]:.1f} s")
        return fault

    async def kill(self, shard):
        return await self.switch(shard, lambda master: master.process.kill())

    async def failover(self, shard):
        return await self.switch(shard, lambda master: self.fleet.store.fail_over(shard))

    async def partition(self, seconds, shard):
        paused = []

        def pause(master):
            paused.append(master)
            master.process.pause()
        began = time.monotonic()
        try:
            fault = await self.switch(shard, pause)
            await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
        finally:
            for master in paused:
                master.process.resume()
        self.tell(f"{paused[0].name} is back")
        return fault

    async def heal(self):
        def start_again():
            for node in self.fleet.store.nodes:
                if not node.process.is_running:
                    node.process.start()
                    node.process.await_port(node.port)
            self.fleet.store.wait_whole()
            self.fleet.accounts.heal()
        await asyncio.to_thread(start_again)
        self.tell("everything runs again")

    async def reshard(self, count, source=1, target=2):
        if self.fleet.store.kind != "cluster":
            raise Failed("only a cluster has slots")
        began = time.monotonic()
        slots, keys = await asyncio.to_thread(self.fleet.store.reshard, count, source, target)
        self.tell(f"{slots} slots with {keys} keys were moved in {time.monotonic() - began:.1f} s")
        return slots, keys

    async def promote(self, stop_first):
        fault = [time.monotonic(), None]
        server = await asyncio.to_thread(self.fleet.accounts.promote, stop_first)
        fault[1] = time.monotonic()
        self.tell(f"{server.name} is the primary after {fault[1] - fault[0]:.1f} s")
        return fault

    async def rotate(self):
        if not self.fleet.keys:
            raise Failed("this fleet has no seal; --seal gives it one")
        old = self.fleet.keys[0]
        new = await asyncio.to_thread(self.fleet.make_key)
        # Every instance has to verify with the new key before one of them seals with it.
        for keys in ([old, new], [new, old]):
            self.fleet.keys = keys
            for instance in self.fleet.instances:
                await asyncio.to_thread(instance.reload)
            self.tell(f"keys {', '.join(keys)} at all gateways")

    async def upgrade(self, binary):
        for instance in self.fleet.instances:
            await asyncio.to_thread(self.replace, instance, binary)
            self.tell(f"{instance.name} runs {binary}")

    def replace(self, instance, binary):
        self.fleet.drain(instance)
        # nginx answers a reload when its new workers run; requests on the way are few milliseconds long.
        time.sleep(1)
        instance.process.end(seconds=40)
        instance.configure()
        instance.process.command[0] = binary
        instance.process.start()
        instance.process.await_port(instance.port)
        wait_until(f"{instance.name} is ready", lambda: instance.ready().startswith(("ready", "degraded")))
        self.fleet.drain(None)
        time.sleep(1)
