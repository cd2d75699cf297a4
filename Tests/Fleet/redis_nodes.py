"""Redis as one server, as a master with replicas and sentinels, or as a cluster."""

import re
import socket
import subprocess
import time

from processes import Failed, Process, Unavailable, free_port, wait_until

LOST_AFTER = 1000
SLOTS = 16384
KEYS_AT_ONCE = 100


class ReplyError(Exception):
    """Redis replied with an error."""


def call(port, *words, timeout=2.0):
    """One command on a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(encoded)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded]
        connection.sendall(b"".join(parts))
        with connection.makefile("rb") as stream:
            return read_reply(stream)


def read_reply(stream):
    """A reply as int, bytes, None or list."""
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise OSError("the connection was closed")
    kind, text = line[:1], line[1:-2]
    if kind == b"-":
        raise ReplyError(text.decode(errors="replace"))
    if kind == b":":
        return int(text)
    if kind == b"$":
        return None if int(text) < 0 else stream.read(int(text) + 2)[:-2]
    if kind == b"*":
        return None if int(text) < 0 else [read_reply(stream) for _ in range(int(text))]
    return text


def info(port, section, timeout=0.5):
    lines = call(port, "INFO", section, timeout=timeout).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


class Program:
    """The server program: Debian's, unless another one is named, such as a Valkey."""

    path = "redis-server"

    @classmethod
    def use(cls, path):
        """:returns: what the program says it is."""
        try:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{path} does not run here: {error}") from None
        if not version(said):
            raise Unavailable(f"{path} is no server: {said[:200]}")
        cls.path = path
        return said

    @classmethod
    def chooses_bus(cls):
        """Whether the port of a cluster's bus is a setting; before 7.0 it is 10,000 above the node's own."""
        said = subprocess.run([cls.path, "--version"], capture_output=True, text=True, timeout=10).stdout
        return version(said) >= (7, 0)


def version(text):
    """The version in the line that a server prints; `None` of another line."""
    found = re.search(r" server v=(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def cluster_ports(chooses_bus):
    """A free port, that of the bus, and the options for it."""
    while True:
        port, bus = free_port(), free_port()
        if chooses_bus:
            return port, bus, ("--cluster-port", bus)
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port + 10000))
            return port, port + 10000, ()
        except (OSError, OverflowError):
            pass


class Node:
    """One server."""

    def __init__(self, name, folder, *options, port=None):
        self.name, self.port = name, port or free_port()
        home = folder / name
        home.mkdir()
        self.process = Process(name, [
            Program.path, "--port", self.port, "--bind", "127.0.0.1", "--dir", home, "--save", "",
            "--repl-diskless-sync-delay", "0", "--repl-backlog-size", "16mb", *options], folder)
        self.process.await_port(self.port)

    @property
    def role(self):
        """`master`, `slave`, or what keeps the node from saying so."""
        if not self.process.is_running:
            return "dead"
        if self.process.is_stopped:
            return "stopped"
        try:
            return info(self.port, "replication")["role"]
        except (OSError, ReplyError, KeyError):
            return "silent"

    @property
    def is_in_sync(self):
        try:
            return info(self.port, "replication").get("master_link_status") == "up"
        except (OSError, ReplyError):
            return False


class Single:
    """One server; its loss is an outage."""

    kind = "single"
    shards = 1

    def __init__(self, folder):
        # A server without replicas keeps its data on disk, or every restart would be a logout.
        self.nodes = [Node("redis1", folder, "--appendonly", "yes")]
        self.others = []

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.nodes[0].port}/0"

    def master(self, shard):
        return self.nodes[0] if self.nodes[0].role == "master" else None

    def fail_over(self, shard):
        raise Failed("a single server has no replica")

    def wait_whole(self):
        wait_until("redis answers", lambda: self.nodes[0].role == "master")

    def slots(self, node):
        return 0


class Sentinel(Single):
    """A master, two replicas and three sentinels."""

    kind = "sentinel"

    def __init__(self, folder):
        first = Node("redis1", folder)
        self.nodes = [first] + [Node(f"redis{n}", folder, "--replicaof", "127.0.0.1", first.port) for n in (2, 3)]
        wait_until("the replicas are in sync", lambda: all(node.is_in_sync for node in self.nodes[1:]))
        self.ports = [free_port() for _ in range(3)]
        self.others = []
        for number, port in enumerate(self.ports, 1):
            home = folder / f"sentinel{number}"
            home.mkdir()
            (home / "sentinel.conf").write_text("\n".join([
                "bind 127.0.0.1", f"port {port}", f"dir {home}", f"sentinel monitor mymaster 127.0.0.1 {first.port} 2",
                f"sentinel down-after-milliseconds mymaster {LOST_AFTER}", "sentinel failover-timeout mymaster 3000", ""]))
            process = Process(f"sentinel{number}", [Program.path, home / "sentinel.conf", "--sentinel"], folder)
            process.await_port(port)
            self.others.append(process)
        self.wait_whole()

    @property
    def url(self):
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{port}" for port in self.ports) + "/mymaster/0"

    def master(self, shard):
        """The node that a majority of sentinels names, if it calls itself master."""
        named = []
        for port in self.ports:
            try:
                named.append(int(call(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")[1]))
            except (OSError, ReplyError, TypeError):
                pass
        for node in self.nodes:
            if named.count(node.port) * 2 > len(self.ports) and node.role == "master":
                return node
        return None

    def fail_over(self, shard):
        call(self.ports[0], "SENTINEL", "FAILOVER", "mymaster")

    def wait_whole(self):
        def is_whole():
            master = self.master(1)
            replicas = [node for node in self.nodes if node is not master]
            return master and all(node.role == "slave" and node.is_in_sync for node in replicas) and all(
                self._knows(port) for port in self.ports)
        wait_until("master, replicas and sentinels know each other", is_whole, 60)

    def _knows(self, port):
        try:
            fields = call(port, "SENTINEL", "MASTER", "mymaster")
        except (OSError, ReplyError):
            return False
        found = dict(zip(fields[::2], fields[1::2]))
        return found[b"num-other-sentinels"] == b"2" and found[b"flags"] == b"master" and int(found[b"num-slaves"]) >= 2


class Cluster(Single):
    """Three masters with a replica each."""

    kind = "cluster"
    shards = 3

    def __init__(self, folder):
        self.buses, self.nodes = [], []
        chooses_bus = Program.chooses_bus()
        for number in range(1, 7):
            port, bus, options = cluster_ports(chooses_bus)
            self.nodes.append(Node(
                f"redis{number}", folder, "--cluster-enabled", "yes", "--cluster-node-timeout", LOST_AFTER,
                "--cluster-replica-validity-factor", "0", *options, port=port))
            self.buses.append(bus)
        self.others = []
        first = self.nodes[0].port
        for number, node in enumerate(self.nodes):
            call(node.port, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < 3:
                last = SLOTS - 1 if number == 2 else (number + 1) * (SLOTS // 3) - 1
                # A range can be named since 7.0.
                call(node.port, "CLUSTER", "ADDSLOTS", *range(number * (SLOTS // 3), last + 1))
            if number:
                call(node.port, "CLUSTER", "MEET", "127.0.0.1", first, self.buses[0])
        wait_until("the nodes know each other", lambda: all(len(self.map(node)) == 6 for node in self.nodes))
        for master, replica in zip(self.nodes[:3], self.nodes[3:]):
            call(replica.port, "CLUSTER", "REPLICATE", self.id(master))
        # Which nodes are one shard never changes here, whoever of them is the master.
        self.pairs = list(zip(self.nodes[:3], self.nodes[3:]))
        self.wait_whole()

    @property
    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])

    def id(self, node):
        return call(node.port, "CLUSTER", "MYID").decode()

    def map(self, node):
        """The lines of `CLUSTER NODES` as a node sees them, as lists of words."""
        try:
            return [line.split() for line in call(node.port, "CLUSTER", "NODES", timeout=0.5).decode().splitlines()]
        except (OSError, ReplyError):
            return []

    def master(self, shard):
        """The master of a shard, counted from 1, where all living nodes name it and it calls itself one."""
        living = [node for node in self.nodes if node.process.is_running and not node.process.is_stopped]
        maps = [self.map(node) for node in living]
        for candidate in self.pairs[shard - 1]:
            if candidate not in living or candidate.role != "master":
                continue
            address = f"127.0.0.1:{candidate.port}@"
            named = [any(line[1].startswith(address) and "master" in line[2] and "fail" not in line[2] for line in lines)
                     for lines in maps]
            if all(named) and self.is_ok(candidate) and self.slots(candidate):
                return candidate
        return None

    def is_ok(self, node):
        try:
            return b"cluster_state:ok" in call(node.port, "CLUSTER", "INFO", timeout=0.5)
        except (OSError, ReplyError):
            return False

    def ranges(self, node):
        own = next((line for line in self.map(node) if "myself" in line[2]), [])
        return [tuple(map(int, (one.split("-") * 2)[:2])) for one in own[8:] if not one.startswith("[")]

    def slots(self, node):
        return sum(last - first + 1 for first, last in self.ranges(node))

    def fail_over(self, shard):
        replica = next(node for node in self.pairs[shard - 1] if node.role == "slave")
        call(replica.port, "CLUSTER", "FAILOVER")

    def wait_whole(self):
        def is_whole():
            for shard in range(1, self.shards + 1):
                master = self.master(shard)
                replica = next((node for node in self.pairs[shard - 1] if node is not master), None)
                if not master or replica.role != "slave" or not replica.is_in_sync:
                    return False
            return all(self.is_ok(node) for node in self.nodes)
        wait_until("every shard has a master and a replica in sync", is_whole, 60)

    def reshard(self, count, source=1, target=2, tell=lambda moved: None):
        """Moves slots with their keys, as `redis-cli --cluster reshard` does."""
        giver, taker = self.master(source), self.master(target)
        if not giver or not taker:
            raise Failed("a shard has no master")
        numbers = [slot for first, last in self.ranges(giver) for slot in range(first, last + 1)][:count]
        giver_id, taker_id = self.id(giver), self.id(taker)
        others = [node for node in self.nodes if node not in (giver, taker) and node.role == "master"]
        keys = 0
        for moved, slot in enumerate(numbers):
            call(taker.port, "CLUSTER", "SETSLOT", slot, "IMPORTING", giver_id)
            call(giver.port, "CLUSTER", "SETSLOT", slot, "MIGRATING", taker_id)
            while found := call(giver.port, "CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE):
                call(giver.port, "MIGRATE", "127.0.0.1", taker.port, "", 0, 5000, "KEYS", *found)
                keys += len(found)
            for node in [taker, giver, *others]:
                call(node.port, "CLUSTER", "SETSLOT", slot, "NODE", taker_id)
            tell(moved + 1)
        return len(numbers), keys


TOPOLOGIES = {"cluster": Cluster, "sentinel": Sentinel, "single": Single}


def wait_for_master(store, shard, unlike, seconds=30):
    """Waits until a shard has another master than before. :returns: when that was seen."""
    def has_changed():
        found = store.master(shard)
        return found is not None and found is not unlike
    wait_until(f"shard {shard} has another master", has_changed, seconds)
    return time.monotonic()
