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


STARTED = []


def end_all():
    """Ends every process that was started here, the last one first."""
    while STARTED:
        STARTED.pop().end(signal.SIGQUIT, 10)


class Process:
    """One process with its output in a file; it can be started again with the same command."""

    def __init__(self, name, command, folder, user=None):
        self.name, self.command, self.folder, self.user = name, [str(word) for word in command], folder, user
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.child, self.is_stopped = None, False
        STARTED.append(self)
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
        if self.child is None or not self.is_running:
            return
        if self.is_stopped:
            self.resume()
        self.child.send_signal(with_signal)
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()


class Resources:
    """What a process holds: connections by their other end, other descriptors, and memory in MiB."""

    def __init__(self, pid, ports=None, own=()):
        """:param ports: the names of other ends by port; :param own: the ports that the process listens on."""
        self.connections = dict.fromkeys([*set((ports or {}).values()), "clients"], 0)
        self.others = self.resident = 0
        folder = pathlib.Path(f"/proc/{pid}")
        try:
            ends = connections()
            for entry in list((folder / "fd").iterdir()):
                local, remote = ends.get(os.readlink(entry)[8:-1], (None, None))
                name = "clients" if local in own and remote else (ports or {}).get(remote)
                if name:
                    self.connections[name] += 1
                else:
                    self.others += 1
            self.resident = int((folder / "status").read_text().partition("VmRSS:")[2].split()[0]) // 1024
        except (OSError, IndexError):
            # A descriptor was closed meanwhile, or the process has ended.
            pass

    def __str__(self):
        held = ", ".join(f"{name} {count}" for name, count in sorted(self.connections.items()))
        return f"{held}, other descriptors {self.others}, {self.resident} MiB"


def connections():
    """The ports of every TCP connection of this machine, by inode."""
    found = {}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        found[words[9]] = (int(words[1].rsplit(":", 1)[1], 16), int(words[2].rsplit(":", 1)[1], 16))
    return found


def raise_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
