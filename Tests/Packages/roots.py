"""Clean Debian systems for the tests of packages: made once with debootstrap, and used through an overlay."""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / ".packages" / "roots"
RELEASE = "bookworm"
# In the containers and namespaces of the tests nothing else listens.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


class Failure(Exception):
    pass


class Unavailable(Exception):
    """Something that a test needs cannot be had here."""


def sh(*command, check=True, quiet=True, **options):
    done = subprocess.run([str(part) for part in command], capture_output=quiet, text=True, **options)
    if check and done.returncode:
        raise Failure(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout or ''}{done.stderr or ''}")
    return done


def mirror():
    """Where this machine gets its own packages from."""
    text = sh("apt-cache", "policy").stdout
    found = re.search(rf"(https?://\S+) {RELEASE}/main", text)
    if not found:
        raise Failure(f"apt knows no source of {RELEASE}")
    return found[1]


def base(name, packages):
    """The folder of a system with these packages, from the cache where it has one."""
    digest = hashlib.sha256(" ".join([RELEASE, *sorted(packages)]).encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    debs = CACHE / "debs"
    debs.mkdir(exist_ok=True)
    unfinished = CACHE / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    print(f"packages: making a {RELEASE} system with {', '.join(packages) or 'nothing else'}", file=sys.stderr)
    include = [f"--include={','.join(packages)}"] if packages else []
    sh("debootstrap", "--variant=minbase", f"--cache-dir={debs.resolve()}", *include, RELEASE, unfinished, mirror())
    sh("apt-get", "clean", env=ENVIRONMENT, preexec_fn=lambda: os.chroot(unfinished))
    # In one step, so that a system that is there is whole.
    unfinished.rename(folder)
    return folder


@contextlib.contextmanager
def overlay(lower):
    """A system that begins as `lower`, and whose changes are thrown away."""
    with tempfile.TemporaryDirectory(prefix="martlet-packages-") as folder:
        work = pathlib.Path(folder)
        for name in ("upper", "work", "root"):
            (work / name).mkdir()
        # Overlays cannot lie on overlays everywhere, so the changes are on a file system in memory.
        sh("mount", "-t", "tmpfs", "-o", "mode=0755", "martlet-packages", work / "work")
        for name in ("upper", "work"):
            (work / "work" / name).mkdir()
        options = f"lowerdir={lower},upperdir={work}/work/upper,workdir={work}/work/work"
        root = work / "root"
        try:
            sh("mount", "-t", "overlay", "-o", options, "martlet-packages", root)
            yield root
        finally:
            for path in ("root/proc", "root", "work"):
                sh("umount", "--lazy", work / path, check=False)


class Chroot:
    """Runs commands in a folder as if it were the whole system, with a network of its own."""

    def __init__(self, root):
        self.root = root
        sh("mount", "-t", "proc", "proc", root / "proc")

    def run(self, *command, check=True, user=None, **options):
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"] if user else []
        return sh("chroot", self.root, *as_user, *command, check=check, env=ENVIRONMENT, **options)

    def start(self, *command, user, log):
        setpriv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"]
        environment = ENVIRONMENT | {"SWIFT_BACKTRACE": "enable=no"}
        return subprocess.Popen(
            ["chroot", str(self.root), *setpriv, *command], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class Booted:
    """A system that systemd has booted in a container without a network of the machine."""

    def __init__(self, root, log):
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe"]
        # The cgroups are those of this test, not of a session of systemd, which a machine for tests may not have.
        self.process = subprocess.Popen(
            [*command, "--boot", "-D", str(root)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.leader = self.wait_for_leader()
        self.wait_for_boot()

    def wait_for_leader(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for _ in range(300):
            if self.process.poll() is not None:
                raise Failure("systemd-nspawn has ended")
            for child in children.read_text().split():
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return child
            time.sleep(0.1)
        raise Failure("systemd does not start in the container")

    def wait_for_boot(self):
        for _ in range(300):
            state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                return
            time.sleep(0.2)
        raise Failure(f"the container is '{state}' after a minute")

    def run(self, *command, check=True, **options):
        enter = ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]
        return sh(*enter, *command, check=check, env=ENVIRONMENT, **options)

    @property
    def network(self):
        return ["nsenter", f"--target={self.leader}", "--net"]

    def end(self):
        # What systemd takes for a halt without a shutdown of services; nothing of the system is kept.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self.leader), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
            return
        self.process.kill()
        self.process.wait()
