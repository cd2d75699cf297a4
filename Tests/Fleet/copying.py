"""`martlet accounts copy` of many accounts, interrupted on its way."""

import re
import signal
import sqlite3
import subprocess
import time

import fleet as fleets
import postgres
from processes import Failed, wait_until

# Filled without the gateway, which would take hours for as many logins.
ROWS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO accounts (subject, created_at, kept_claims)
  SELECT 'usr_' || i, 1700000000 + i, '{{"name":"Person ' || i || '"}}' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO identities (id, account, provider, subject, created_at)
  SELECT 'idn_' || i, 'usr_' || i, 'apple', printf('%06d.%032x.%04d', i % 999999, i, i % 9999), 1700000000 + i FROM n;
INSERT INTO identity_subjects (provider, subject, identity) SELECT provider, subject, id FROM identities;
"""
CONFIGURATION = """version: 1
server: {{ listen: [{{ address: "127.0.0.1:1" }}] }}
store: {{ url: "memory:" }}
accounts: {{ url: "sqlite:{file}" }}
providers: {{ password: {{ kind: password, users: accounts, hash: {{ memory: 8KiB, iterations: 1 }} }} }}
upstreams: {{ up: {{ endpoints: ["builtin:echo"] }} }}
routes: [{{ name: all, match: {{ path: /** }}, auth: {{ providers: [password] }}, upstream: up }}]
"""


def rows_of(text):
    """Rows by table of what a copy prints when it has compared both databases; pure."""
    return {name: int(count) for name, count in re.findall(r"^(\w+): (\d+) rows, SHA-256", text, re.MULTILINE)}


class Copying:
    """One file, one pair of servers."""

    def __init__(self, binary, folder, count):
        self.binary, self.folder, self.count = binary.resolve(), folder, count
        self.file = folder / "martlet.db"
        self.servers = postgres.Pair(folder)

    def fill(self):
        config = self.folder / "martlet.yaml"
        config.write_text(CONFIGURATION.format(file=self.file))
        made = subprocess.run([self.binary, "user", "add", "ada", "--config", config], input=fleets.PASSWORD + "\n",
                              capture_output=True, text=True, cwd=self.folder)
        if made.returncode:
            raise Failed(f"martlet user add: {made.stderr[-500:]}")
        base = sqlite3.connect(self.file)
        with base:
            for statement in ROWS.format(count=self.count).split(";\n"):
                base.execute(statement)
        base.close()

    def start(self, *options):
        command = [self.binary, "accounts", "copy", "--from", f"sqlite:{self.file}", "--to", self.servers.url, *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def copied(self):
        primary = self.servers.of("primary")
        return int(primary.ask("SELECT count(*) FROM identities", postgres.USER) or 0)

    def interrupt(self):
        """Kills a run when a third is copied. :returns: how many identities are there then."""
        child = self.start()
        try:
            wait_until("a third is copied", lambda: self.copied() > self.count // 3 or child.poll() is not None, 600, 0.1)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        return self.copied()

    def finish(self, *options):
        """:returns: seconds, exit code, and rows by table of a run to its end."""
        began = time.monotonic()
        child = self.start(*options)
        out, err = child.communicate(timeout=1800)
        return time.monotonic() - began, child.returncode, rows_of(out), (out + err)[-300:]


def measure(binary, folder, count):
    """:returns: what was seen, and what is wrong."""
    copying = Copying(binary, folder, count)
    copying.fill()
    interrupted = copying.interrupt()
    seconds, code, rows, text = copying.finish()
    again, repeated, _, _ = copying.finish()
    final, last, moved, _ = copying.finish("--final")
    size = int(copying.servers.of("primary").ask("SELECT pg_database_size('martlet')"))
    seen = (f"{size / count:,.0f} bytes each in PostgreSQL with its indexes; killed with {interrupted:,} identities copied; the next run {seconds:.0f} s, exit {code}; another one that "
            f"only compares {again:.0f} s, exit {repeated}; --final {final:.0f} s, exit {last}; compared by SHA-256: "
            + ", ".join(f"{name} {number:,}" for name, number in moved.items() if number))
    wrong = [] if (code, repeated, last) == (0, 0, 0) else [text]
    for name in ("accounts", "identities", "identity_subjects"):
        if moved.get(name) != count:
            wrong.append(f"{name}: {moved.get(name)} rows")
    if not count // 4 < interrupted < count:
        wrong.append(f"the interrupted run had copied {interrupted}")
    return seen, wrong
