"""The machine: its cores and ports, the processes of a run and their resource usage, and the facts for the results."""

import os
import pathlib
import platform
import resource
import signal
import socket
import subprocess
import time

CANDIDATE_CORE = 0
LOAD_CORE = 1
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = 1_000_000 / os.sysconf("SC_CLK_TCK")


class Unavailable(Exception):
    """A requirement is missing on this machine; the text has the reason."""


class Failed(Exception):
    """A step of the run failed."""


def check_cores():
    if not {CANDIDATE_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise Unavailable("two cores are needed, 0 for the candidates and 1 for load and upstream")


def raise_file_limit():
    """Raises the limit of open files to the maximum: 10,000 connections need two ends each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port(taken=set()):
    """A free port of 127.0.0.1 that no earlier call returned."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in taken:
            taken.add(port)
            return port


def stat_fields(pid):
    """The fields of /proc/<pid>/stat from the state on, or None when the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None


def tree(pid):
    """A process and all its descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        fields = stat_fields(entry) if entry.isdigit() else None
        if fields and fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


class Usage:
    """Processor time of a process and all its descendants, in microseconds; two values can be subtracted."""

    def __init__(self, total, user, system):
        self.total, self.user, self.system = total, user, system

    def __sub__(self, other):
        return Usage(self.total - other.total, self.user - other.user, self.system - other.system)

    @classmethod
    def of(cls, pid):
        total = user = system = 0
        for member in tree(pid):
            fields = stat_fields(member)
            try:
                # The process's own clock counts nanoseconds; `utime` and `stime` are the same sum in ticks of 10 ms.
                total += time.clock_gettime_ns((~member << 3) | 2) / 1000
            except OSError:
                continue
            if fields:
                user, system = user + int(fields[11]) * TICK, system + int(fields[12]) * TICK
        return cls(total, user, system)


def memory(pid, field="Pss"):
    """`Pss` or `Rss` of a process in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise Failed(f"/proc/{pid}/smaps_rollup has no {field}")


class Processes:
    """The processes of a run; all of them end with it, whatever happens."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command, core, folder=None):
        """Starts a process on one core; its output goes to `<name>.log`."""
        cores = os.sched_getaffinity(0)
        with open(self.folder / f"{name}.log", "ab") as log:
            # The process inherits our own core; setting it in the child would add milliseconds to its start.
            os.sched_setaffinity(0, {core})
            try:
                process = subprocess.Popen(
                    [str(word) for word in command], cwd=folder or self.folder, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True)
            finally:
                os.sched_setaffinity(0, cores)
        process.name = name
        self.running.append(process)
        return process

    def log(self, name, lines=2):
        text = (self.folder / f"{name}.log").read_text(errors="replace")
        return " / ".join(text.strip().splitlines()[-lines:])[-300:]

    def empty_log(self, process):
        os.truncate(self.folder / f"{process.name}.log", 0)

    def await_port(self, process, port, seconds=20):
        """Waits until a process accepts connections.

        :raises Failed: when it ends, or takes too long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
        raise Failed(f"{process.name} does not start: {self.log(process.name)}")

    def stop(self, process, timeout=10):
        """Ends a process and all its descendants, by their ids."""
        if process not in self.running:
            return
        members = {pid: start_of(pid) for pid in tree(process.pid)}
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        for pid, began in members.items():
            if began is not None and start_of(pid) == began:
                os.kill(pid, signal.SIGKILL)
        process.wait()
        self.running.remove(process)
        self.empty_log(process)

    def stop_all(self):
        for process in list(reversed(self.running)):
            self.stop(process, timeout=3)


def start_of(pid):
    """The start time of a process, which distinguishes it from a later one with the same id; None when it has ended."""
    fields = stat_fields(pid)
    return fields[19] if fields and fields[0] != "Z" else None


def run(command, **options):
    """Runs a command to its end and returns its output.

    :raises Failed: when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise Failed(f"{pathlib.Path(str(command[0])).name} exited with {done.returncode}: {said}")
    return done.stdout


def on_load_core(command):
    return ["taskset", "-c", str(LOAD_CORE), *command]


def first_line(*command):
    """The first line of a program's output."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        return (done.stdout + done.stderr).strip().splitlines()[0]
    except (OSError, IndexError):
        return f"no {pathlib.Path(str(command[0])).name}"


def facts(binary):
    """The facts about the machine for the results."""
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "martlet": first_line(binary, "--version"),
    }
