"""PostgreSQL: a primary and a streaming replica, and their change of roles."""

import os
import pathlib
import shutil
import signal
import subprocess

from processes import Failed, Process, Unavailable, free_port, wait_until

SETTINGS = {
    "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "wal_level": "replica", "hot_standby": "on",
    "max_connections": "60", "wal_keep_size": "64MB", "fsync": "off", "shared_buffers": "16MB",
}
USER = "martlet"


def programs():
    """The folder of the newest PostgreSQL; Debian keeps its programs out of PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    path = found[-1] if found else shutil.which("initdb")
    if not path:
        raise Unavailable("PostgreSQL is not installed")
    return pathlib.Path(path).parent


class Server:
    def __init__(self, name, folder):
        self.name, self.folder, self.port = name, folder / name, free_port()
        self.process = None

    def start(self):
        options = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
        command = [programs() / "postgres", "-D", self.folder, "-p", self.port, *options]
        if self.process:
            self.process.start()
        else:
            self.process = Process(self.name, command, self.folder.parent, owner())
        self.process.await_port(self.port)
        wait_until(f"{self.name} takes queries", lambda: self.ask("SELECT 1") == "1")

    def ask(self, query, database="postgres"):
        """The first column of the first row; empty if the server does not respond."""
        command = [programs() / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-Atqc", query, database]
        result = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"PGCONNECT_TIMEOUT": "2"}, timeout=20)
        return result.stdout.strip()

    @property
    def role(self):
        if not self.process or not self.process.is_running:
            return "dead"
        return {"f": "primary", "t": "replica"}.get(self.ask("SELECT pg_is_in_recovery()"), "silent")


def owner():
    """PostgreSQL does not run as root; then it runs as the user of Debian's package."""
    return "postgres" if os.geteuid() == 0 else None


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, user=owner(), cwd="/")
    if result.returncode:
        raise Unavailable(f"{words[0]}: {result.stderr[-500:]}")


class Pair:
    """The primary and its replica, and who is which."""

    def __init__(self, folder):
        home = folder / "postgresql"
        home.mkdir()
        if owner():
            shutil.chown(home, owner())
        self.servers = [Server("postgres1", home), Server("postgres2", home)]
        first, second = self.servers
        run(programs() / "initdb", "-D", first.folder, "-U", USER, "-A", "trust", "--no-sync", "--no-instructions")
        first.start()
        first.ask(f"CREATE DATABASE {USER}")
        self.copy(first, second)

    def copy(self, source, target):
        """Makes a server a replica of another one."""
        shutil.rmtree(target.folder, ignore_errors=True)
        run(programs() / "pg_basebackup", "-D", target.folder, "-R", "-X", "stream", "-c", "fast", "--no-sync",
            "-h", "127.0.0.1", "-p", source.port, "-U", USER)
        target.start()

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgresql://{USER}@{hosts}/{USER}?target_session_attrs=read-write&sslmode=disable"

    def of(self, role):
        return next((server for server in self.servers if server.role == role), None)

    def promote(self, stop_first=True):
        primary, replica = self.of("primary"), self.of("replica")
        if not replica:
            raise Failed("there is no replica to promote")
        if stop_first and primary:
            primary.process.end(signal.SIGQUIT)
        replica.ask("SELECT pg_promote()")
        wait_until("the replica is a primary", lambda: replica.role == "primary")
        return replica

    def heal(self):
        """Makes the server that is not the newest primary its replica again."""
        living = [server for server in self.servers if server.role == "primary"]
        if not living:
            raise Failed("there is no primary")
        timeline = "SELECT timeline_id FROM pg_control_checkpoint()"
        newest = max(living, key=lambda server: int(server.ask("SELECT ('x' || substr(pg_walfile_name("
                     "pg_current_wal_lsn()), 1, 8))::bit(32)::int") or server.ask(timeline) or 0))
        for server in self.servers:
            if server is not newest and server.role != "replica":
                server.process.end(signal.SIGQUIT)
                self.copy(newest, server)
