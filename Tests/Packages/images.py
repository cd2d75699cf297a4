"""The container image: built with buildah without a registry, and run under the rules that it is made for."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import debian
import roots
from roots import ROOT, Failure, sh

def check(base, folder):
    storage = folder / "storage"
    configuration = folder / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "vfs"\nrunroot = "{storage}/run"\ngraphroot = "{storage}/graph"\n', encoding="utf-8")
    os.environ.update(
        CONTAINERS_STORAGE_CONF=str(configuration), STORAGE_DRIVER="vfs", BUILDAH_ISOLATION="chroot", LC_ALL="C.UTF-8",
        EXECUTABLE=str(ROOT / ".build-release/release/martlet"), BASE="localhost/martlet-base")
    import_base(base)
    name, digest = build(folder)
    again = build(folder)
    debian.expect(again == (name, digest), f"the image is {digest}, and when it is built again {again[1]}")
    archive = next(folder.glob("*.image.tar"))
    container = sh("buildah", "from", name).stdout.strip()
    mounted = pathlib.Path(sh("buildah", "mount", container).stdout.strip())
    size = check_files(mounted)
    said = run(mounted, image_configuration(name), folder)
    sizes = f"{size / 1e6:.1f} MB in {count(mounted)} files, archive {archive.stat().st_size / 1e6:.1f} MB"
    return f"{sizes}; {said}; one digest twice"


def import_base(base):
    container = sh("buildah", "from", "scratch").stdout.strip()
    mounted = sh("buildah", "mount", container).stdout.strip()
    sh("cp", "-a", f"{base}/.", mounted)
    sh("buildah", "config", "--env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", container)
    sh("buildah", "commit", "--rm", "--quiet", container, os.environ["BASE"])


def build(folder):
    """The name and the digest of the image."""
    done = sh(ROOT / ".tools/image/build", folder)
    name, archive = done.stdout.split()[-2:]
    return name, hashlib.sha256(pathlib.Path(archive).read_bytes()).hexdigest()


def image_configuration(name):
    return json.loads(sh("buildah", "inspect", "--type", "image", name).stdout)["Docker"]["config"]


def count(root):
    return sum(1 for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def check_files(root):
    size = 0
    for path in root.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        size += path.stat().st_size
        is_program = os.access(path, os.X_OK) and path.parent.name == "bin"
        debian.expect(not is_program or path.name == "martlet", f"{path.relative_to(root)} is a program in the image")
        debian.expect(not path.stat().st_mode & 0o6000, f"{path.relative_to(root)} changes its user")
    for shell in ("bin/sh", "usr/bin/sh", "bin/bash"):
        debian.expect(not (root / shell).exists(), f"the image has {shell}")
    return size


# What an engine for containers does: namespaces, a root that cannot be written, no capability and none to be gained.
START = """
ip link set lo up
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount -t proc proc "$0/proc"
exec setpriv --no-new-privs chroot --userspec="$1" "$0" "$2" "${@:3}"
"""


def child_of(pid):
    """The only child of a process, when it has become the gateway."""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "martlet":
            return child
    return None


def run(mounted, image, folder):
    user = image["User"]
    environment = dict(one.split("=", 1) for one in image["Env"])
    outside = {**environment, "PATH": roots.ENVIRONMENT["PATH"]}
    namespaces = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
    command = [*namespaces, "bash", "-ec", START, mounted, user, *image["Entrypoint"], *image["Cmd"]]
    began = time.monotonic()
    with open(folder / "container.log", "wb") as log:
        process = subprocess.Popen(
            [str(part) for part in command], env=outside, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        pid = debian.eventually(lambda: child_of(process.pid), "the image starts")
        number = user.split(":")[0]
        inside = ["nsenter", f"--target={pid}", "--mount", "--net", "--pid", "--root", "--wd", "-S", number, "-G", number]
        health = image["Healthcheck"]["Test"]
        debian.expect(health[0] == "CMD", f"the health check needs a shell: {health}")
        ask = lambda: sh(*inside, *health[1:], check=False).returncode == 0
        debian.eventually(ask, "the image is healthy")
        took = time.monotonic() - began
        network = ["nsenter", f"--target={pid}", "--net"]
        status, text = debian.request(f"{debian.GATEWAY}/public/hello", network=network)
        debian.expect(status == 200, f"the request: {status} {text}")
        check_process(pid, number)
        memory = debian.resident(pid)
        debian.expect(sh(*inside, "/bin/sh", "-c", "true", check=False).returncode != 0, "a shell runs in the image")
        os.kill(int(pid), getattr(signal, image["StopSignal"]))
        debian.expect(process.wait(timeout=40) == 0, "the container does not end with 0 at its stop signal")
    except Failure as failure:
        raise Failure(f"{failure}\n{(folder / 'container.log').read_text(errors='replace')[-2000:]}") from failure
    finally:
        process.kill()
        process.wait()
    return f"healthy after {took:.1f} s, {memory} MB of memory, with a root that cannot be written"


def check_process(pid, user):
    status = dict(
        line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    debian.expect(status["Uid"].split() == [user] * 4, f"the process is user {status['Uid']}")
    debian.expect(int(status["CapEff"], 16) == 0, f"the process has capabilities: {status['CapEff']}")
    debian.expect(status["NoNewPrivs"].strip() == "1", "the process may gain rights")
    root = pathlib.Path(f"/proc/{pid}/mountinfo").read_text()
    debian.expect(re.search(r" / ro[, ]", root), "the root can be written")
