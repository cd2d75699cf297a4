"""The life of the Debian package on a clean system: without a service manager, and under systemd."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import roots
from roots import Failure, sh

PASSWORD = "correct horse battery"
CONFIGURATION = "/etc/martlet/config.yaml"
GATEWAY = "http://127.0.0.1:8080"
ADMIN = "http://127.0.0.1:9901"
# Of systemd-analyze security, in tenths.
MOST_EXPOSURE = 20
MOST_BYTES = 30_500_000


def expect(condition, text):
    if not condition:
        raise Failure(text)


def eventually(attempt, text, seconds=30):
    """The first result that is not None or False, within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = attempt()
        if result:
            return result
        time.sleep(0.1)
    raise Failure(f"{text}: not within {seconds} s")


def request(url, body=None, token=None, network=()):
    """The status and the body of a response; status 0 without one. `network` is a command that enters one."""
    script = (
        "import json,sys,urllib.error,urllib.request as r\n"
        "u,b,t=json.loads(sys.argv[1])\n"
        "q=r.Request(u,data=b and b.encode(),headers={'Authorization':'Bearer '+t} if t else {})\n"
        "try:\n a=r.urlopen(q,timeout=10); print(a.status); print(a.read().decode())\n"
        "except urllib.error.HTTPError as e: print(e.code); print(e.read().decode())\n"
        "except OSError as e: print(0); print(e)\n")
    done = sh(*network, "python3", "-c", script, json.dumps([url, body, token]))
    status, _, text = done.stdout.partition("\n")
    return int(status), text


@contextlib.contextmanager
def load(url, network=()):
    """Requests while the block runs; afterwards the yielded list has how many there were and which failed."""
    program = pathlib.Path(__file__).with_name("load.py")
    process = subprocess.Popen(
        [*network, "python3", str(program), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    outcome = []
    process.stdout.readline()
    try:
        time.sleep(0.5)
        yield outcome
        time.sleep(0.5)
    finally:
        text, _ = process.communicate("", timeout=60)
    outcome.append(json.loads(text))


def check_load(outcome):
    expect(outcome[0]["sent"] > 50, f"only {outcome[0]['sent']} requests were sent")
    expect(not outcome[0]["failed"], f"{len(outcome[0]['failed'])} requests failed: {outcome[0]['failed'][:5]}")
    return f"{outcome[0]['sent']} requests, none failed"


def sign_in(network=()):
    """Logs ada in and makes a request with her session."""
    form = f"username=ada&password={PASSWORD.replace(' ', '+')}"
    status, text = request(f"{GATEWAY}/auth/login/password", form, network=network)
    expect(status == 200, f"the login: {status} {text}")
    status, text = request(f"{GATEWAY}/v1/orders", token=json.loads(text)["access_token"], network=network)
    expect(status == 200 and '"x-user-id":"usr_' in text, f"the request with a session: {status} {text}")


def check_contents(package):
    """What can be seen without an installation. :returns: a line for the summary."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        sh("dpkg-deb", "--extract", package, tree)
        program = tree / "usr/bin/martlet"
        size = program.stat().st_size
        expect(size <= MOST_BYTES, f"the executable has {size} bytes, more than {MOST_BYTES}")
        here = str(roots.ROOT).encode()
        expect(here not in program.read_bytes(), f"the executable names {roots.ROOT}")
        for file in tree.rglob("*"):
            named = file.is_file() and here in file.read_bytes()
            expect(not named, f"{file.relative_to(tree)} names {roots.ROOT}")
        check_hardening(program)
        help_text = sh(program, "help").stdout
        made = {
            "completion": ["bash-completion/completions/martlet", "zsh/vendor-completions/_martlet",
                           "fish/vendor_completions.d/martlet.fish"],
            "man": ["man/man1/martlet.1.gz", "man/man5/martlet.yaml.5.gz"],
        }
        missing = []
        for command, files in made.items():
            if f"\n  {command} " in help_text:
                for file in files:
                    expect((tree / "usr/share" / file).is_file(), f"{file} is missing")
            else:
                missing.append(command)
        unit = tree / "lib/systemd/system/martlet.service"
        if shutil.which("systemd-analyze"):
            done = sh("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSURE}", unit, check=False)
            expect(done.returncode == 0, f"systemd-analyze security:\n{done.stdout[-400:]}{done.stderr}")
            exposure = done.stdout.strip().rsplit(": ", 1)[-1].split()[0]
        else:
            exposure = "SKIPPED"
        check_lintian(package)
        note = f"; not in this executable: {', '.join(missing)}" if missing else ""
        return f"{package.stat().st_size / 1e6:.1f} MB, the executable {size / 1e6:.1f} MB, exposure {exposure}{note}"


def check_hardening(program):
    """What the loader protects: as other servers of the system are linked."""
    segments = sh("readelf", "--wide", "--program-headers", program).stdout
    dynamic = sh("readelf", "--wide", "--dynamic", program).stdout
    expect("GNU_RELRO" in segments, "relocated data stays writable: there is no segment GNU_RELRO")
    expect("BIND_NOW" in dynamic or "Flags: NOW" in dynamic, "functions are bound at their first call, not at the start")
    expect(" DYN (" in sh("readelf", "--file-header", program).stdout,
           "the executable is not position-independent")
    expect("(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic, "libraries are loaded from a path of the executable")
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    expect("RWE" not in stack, "the stack is executable")


def check_lintian(package):
    if not shutil.which("lintian"):
        return
    done = sh("lintian", "--fail-on", "error", "--allow-root", package, check=False)
    expect(done.returncode == 0, f"lintian:\n{done.stdout}")


def check_installed(system):
    """What a system has after the installation."""
    line = system.run("getent", "passwd", "martlet").stdout
    expect("/usr/sbin/nologin" in line, f"the user can log in: {line}")
    modes = system.run(
        "stat", "-c", "%n %U:%G %a", "/etc/martlet", CONFIGURATION, "/etc/martlet/credentials", "/var/lib/martlet",
        "/var/log/martlet").stdout.splitlines()
    wanted = [
        "/etc/martlet root:martlet 750", f"{CONFIGURATION} root:martlet 640", "/etc/martlet/credentials root:root 700",
        "/var/lib/martlet martlet:martlet 750", "/var/log/martlet martlet:martlet 750"]
    expect(modes == wanted, f"owners and modes are {modes}")
    system.run("martlet", "check", "--strict", "--config", CONFIGURATION)


def add_user(system):
    system.run(
        "setpriv", "--reuid=martlet", "--regid=martlet", "--init-groups", "martlet", "user", "add", "ada", "--config",
        CONFIGURATION, input=f"{PASSWORD}\n{PASSWORD}\n")


def remove(system, added=None):
    """Removes and purges. What is left is an error, but for a file that an administrator has added."""
    system.run("apt-get", "remove", "-q", "-y", "martlet")
    kept = system.run("ls", CONFIGURATION, "/var/lib/martlet/martlet.db", check=False)
    expect(kept.returncode == 0, f"a removal deletes data: {kept.stderr}")
    gone = system.run("ls", "/usr/bin/martlet", check=False)
    expect(gone.returncode != 0, "the executable is there after a removal")
    system.run("dpkg", "--purge", "martlet")
    if added:
        system.run("rm", added)
        system.run("rmdir", "/etc/martlet/credentials", "/etc/martlet")
    for path in ("/etc/martlet", "/var/lib/martlet", "/var/log/martlet", "/etc/logrotate.d/martlet", "/run/martlet"):
        expect(system.run("ls", "-d", path, check=False).returncode != 0, f"{path} is there after a purge")


def plain_base(package):
    """A system with nothing but what the package depends on, and so the proof that this is enough."""
    return roots.base("plain", libraries(package))


def systemd_base(package):
    return roots.base("systemd", [*libraries(package), "systemd", "systemd-sysv", "dbus", "logrotate"])


def without_manager(package, base):
    """In a chroot, where nothing starts the service: the test does what the unit says, as its user."""
    with roots.overlay(base) as root, open(root / "martlet.log", "wb") as log:
        system = roots.Chroot(root)
        shutil.copy(package, root / "martlet.deb")
        system.run("apt-get", "install", "-q", "-y", "--no-install-recommends", "/martlet.deb")
        check_installed(system)
        began = time.monotonic()
        first = system.start("martlet", "run", "--config", CONFIGURATION, user="martlet", log=log)
        try:
            eventually(lambda: request(f"{ADMIN}/readyz")[0] == 200, "the gateway is ready")
            took = time.monotonic() - began
            add_user(system)
            sign_in()
            memory = resident(first.pid)
            with load(f"{GATEWAY}/public/hello") as outcome:
                system.run("dpkg", "-i", "/martlet.deb")
                first.send_signal(signal.SIGUSR2)
                first.wait(timeout=60)
            said = check_load(outcome)
            expect(request(f"{ADMIN}/readyz")[0] == 200, "the gateway is not ready after the upgrade")
            sign_in()
            remove(system)
        finally:
            end(root)
        return f"ready after {took:.2f} s with {memory} MB of memory; upgraded over itself: {said}"


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1000)
    return 0


def of_root(root):
    """Processes that were started in this folder."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "root").readlink() == root:
                yield int(folder.name)


def end(root):
    """Ends what runs in this folder."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in list(of_root(root)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        end_time = time.monotonic() + 10
        while list(of_root(root)) and time.monotonic() < end_time:
            time.sleep(0.1)


def libraries(package):
    """The names of the packages that this one depends on, so that a system with them needs no network."""
    fields = sh("dpkg-deb", "-f", package, "Depends").stdout
    return sorted({part.split("|")[0].split("(")[0].strip() for part in fields.split(",")})


def under_systemd(package, base):
    """Under a systemd of its own, in a container."""
    with roots.overlay(base) as root, open(root.parent / "boot.log", "wb") as log:
        shutil.copy(package, root / "martlet.deb")
        system = roots.Booted(root, log)
        try:
            return in_container(system)
        except Failure as failure:
            journal = system.run("journalctl", "--no-pager", "-u", "martlet", check=False).stdout
            lines = [line for line in journal.splitlines() if '"event":"request"' not in line]
            raise Failure("\n".join([str(failure), *lines[-20:]])) from failure
        finally:
            system.end()


def in_container(system):
    network = system.network
    system.run("dpkg", "-i", "/martlet.deb")
    check_installed(system)
    system.run("systemctl", "is-active", "martlet")
    system.run("systemctl", "is-enabled", "martlet")
    system.run("systemd-analyze", "verify", "--man=no", "martlet.service", "martlet.socket")
    system.run("systemd-analyze", "security", f"--threshold={MOST_EXPOSURE}", "martlet.service")
    expect(request(f"{ADMIN}/readyz", network=network)[0] == 200, "the gateway is not ready")
    # What the hardening forbids would show here.
    journal = system.run("journalctl", "--no-pager", "--output=cat", "-u", "martlet").stdout
    expect("Failed" not in journal and "not permitted" not in journal, f"the journal has\n{journal}")
    add_user(system)
    sign_in(network)
    pid = system.run("systemctl", "show", "-P", "MainPID", "martlet").stdout.strip()
    memory = system.run("sed", "-n", "s/VmRSS: *//p", f"/proc/{pid}/status").stdout.split()[0]

    # An invalid configuration fails the reload, and changes nothing.
    system.run("systemctl", "reload", "martlet")
    change(system, "builtin:echo", "builtin:nothing")
    expect(system.run("systemctl", "reload", "martlet", check=False).returncode != 0, "an invalid file is reloaded")
    change(system, "builtin:nothing", "builtin:echo")

    # A key that only root can read.
    system.run("martlet", "keygen", "accounts", "--out", "/etc/martlet/credentials/accounts.key")
    change(system, "# key_file:", "key_file:")
    system.run("systemctl", "restart", "martlet")
    sign_in(network)
    # systemd does not show credentials to the command that reloads.
    system.run("systemctl", "reload", "martlet")

    before = system.run("systemctl", "show", "-P", "MainPID", "martlet").stdout
    with load(f"{GATEWAY}/public/hello", network) as outcome:
        done = system.run("dpkg", "-i", "/martlet.deb")
    expect("did not take over" not in done.stderr, done.stderr)
    after = system.run("systemctl", "show", "-P", "MainPID", "martlet").stdout
    expect(before != after, "the upgrade left the old process")
    said = check_load(outcome)
    system.run("systemctl", "is-active", "martlet")
    sign_in(network)

    # A port of the service manager stays open while the gateway restarts.
    change(system, "address: 127.0.0.1:8080", "address: fd:3")
    system.run("systemctl", "stop", "martlet")
    system.run("systemctl", "start", "martlet.socket")
    system.run("systemctl", "start", "martlet")
    with load("http://127.0.0.1:443/public/hello", network) as outcome:
        system.run("systemctl", "restart", "martlet")
    check_load(outcome)
    system.run("systemctl", "stop", "martlet.socket", "martlet")
    # A port below 1024 without it.
    change(system, "address: fd:3", "address: 127.0.0.1:80")
    system.run("systemctl", "start", "martlet")
    expect(request("http://127.0.0.1:80/public/hello", network=network)[0] == 200, "port 80 does not respond")

    check_rotation(system, network)
    remove(system, added="/etc/martlet/credentials/accounts.key")
    left = system.run("systemctl", "is-active", "martlet", check=False).stdout.strip()
    expect(left != "active", "the service runs after a purge")
    return f"{int(memory) // 1000} MB of memory; reload, credentials, sockets; upgraded over itself: {said}"


def check_rotation(system, network):
    """Access lines go to a file, which logrotate renames and the gateway opens again."""
    log = "/var/log/martlet/access.log"
    change(system, "^admin:", f"log: {{ access: {{ file: {log} }} }}\\n\\nadmin:")
    system.run("systemctl", "restart", "martlet")
    seen = lambda path, file: eventually(
        lambda: system.run("grep", "-q", path, file, check=False).returncode == 0, f"{path} is in {file}")
    request("http://127.0.0.1:80/public/before", network=network)
    seen("/public/before", log)
    system.run("logrotate", "--force", "/etc/logrotate.d/martlet")
    seen("/public/before", f"{log}.1")
    request("http://127.0.0.1:80/public/after", network=network)
    seen("/public/after", log)


def change(system, old, new):
    system.run("sed", "-i", f"s|{old}|{new}|", CONFIGURATION)
