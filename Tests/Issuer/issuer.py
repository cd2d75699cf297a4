"""The issuer's packages, which come from PyPI, and its process."""

import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".issuer"
REQUIREMENTS = HERE / "requirements.txt"


class Unavailable(Exception):
    """The issuer cannot be had on this machine."""


def packages():
    """The folder with the packages of `requirements.txt`, from the cache or from PyPI. Nothing is installed."""
    # Some of them are compiled for one version of Python.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = CACHE / f"{version}-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]}"
    if folder.exists():
        return folder
    unfinished = CACHE / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile",
               "--only-binary", ":all:", "--target", unfinished, "-r", REQUIREMENTS]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"pip cannot install it: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")
    # In one step, so that a folder that is there is whole.
    unfinished.rename(folder)
    return folder


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Issuer:
    """One issuer, which may be stopped and started again: its address and its database stay."""

    def __init__(self, folder, clients):
        self.folder, self.clients, self.packages = folder, clients, packages()
        self.port, self.process, self.keys = free_port(), None, []
        self.url = f"http://localhost:{self.port}/o"
        self.new_key()

    def new_key(self):
        """Makes a key that will sign; the others stay published."""
        path = self.folder / f"key-{time.monotonic_ns()}.pem"
        command = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", path]
        subprocess.run(command, check=True, capture_output=True)
        self.keys.insert(0, str(path))

    def start(self, token_seconds=3600):
        settings = self.folder / "issuer.json"
        settings.write_text(json.dumps({
            "port": self.port, "folder": str(self.folder), "clients": self.clients, "keys": self.keys,
            "token_seconds": token_seconds}))
        environment = {**os.environ, "PYTHONPATH": str(self.packages)}
        log = self.folder / "issuer.log"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, HERE / "serve.py", settings], env=environment, cwd=HERE, stdout=output, stderr=output)
        deadline = time.monotonic() + 30
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the issuer does not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.02)

    def _is_ready(self):
        try:
            urllib.request.urlopen(f"{self.url}/.well-known/openid-configuration", timeout=5).close()
            return True
        except OSError:
            return False

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self, **settings):
        self.stop()
        self.start(**settings)
