"""The processes of a fleet: started in one folder, signaled and ended by their own ids."""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

TIMEOUT = 30


class Unavailable(Exception):
    """A requirement of the fleet is missing on this machine, or does not start."""


class Failed(Exception):
    """A step did not do what it should."""


def free_port(taken=set()):
    """A free port of 127.0.0.1 that no earlier call returned; low enough for the bus port of a Redis Cluster."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in taken:
            taken.add(port)
            return port


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def wait_until(what, is_so, seconds=TIMEOUT, every=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return
        time.sleep(every)
    raise Failed(f"after {seconds} s still not: {what}")


class Process:
    """One process with its output in a file; it can be started again with the same command."""

    def __init__(self, name, command, folder, user=None):
        self.name, self.command, self.folder, self.user = name, [str(word) for word in command], folder, user
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.child, self.is_stopped = None, False
        self.start()

    def start(self):
        with open(self.log, "ab") as output:
            self.child = subprocess.Popen(
                self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, user=self.user,
                start_new_session=True, preexec_fn=raise_file_limit, env=os.environ | {"SWIFT_BACKTRACE": "enable=no"})
        self.is_stopped = False

    @property
    def pid(self):
        return self.child.pid

    @property
    def is_running(self):
        return self.child.poll() is None

    def await_port(self, port):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and self.is_running:
            if accepts(port):
                return
            time.sleep(0.05)
        raise Unavailable(f"{self.name} does not start: {self.log.read_text(errors='replace')[-800:]}")

    def kill(self):
        self.child.kill()
        self.child.wait()

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def resume(self):
        self.child.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def end(self, with_signal=signal.SIGTERM, seconds=15):
        if not self.is_running:
            return
        if self.is_stopped:
            self.resume()
        self.child.send_signal(with_signal)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()


class Resources:
    """What a process holds."""

    def __init__(self, pid):
        folder = pathlib.Path(f"/proc/{pid}")
        self.descriptors = self.sockets = self.resident = 0
        try:
            for entry in (folder / "fd").iterdir():
                self.descriptors += 1
                self.sockets += os.readlink(entry).startswith("socket:")
        except OSError:
            # A descriptor was closed meanwhile, or the process has ended.
            pass
        try:
            status = (folder / "status").read_text()
            self.resident = int(status.partition("VmRSS:")[2].split()[0]) // 1024
        except (OSError, IndexError):
            pass


def raise_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
