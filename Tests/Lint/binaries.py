"""Checks the built executable: no Foundation, and at most 30 million bytes without symbols."""

import pathlib
import re
import subprocess
import tempfile

LIMIT = 30_500_000
FOUNDATION = re.compile(r"NEEDED.*\[(libFoundation(?:Networking|XML|Internationalization)?\.so[^\]]*)\]")


def check_binaries(root):
    """Findings about each existing build of `martlet`."""
    for folder in (".build", ".build-release"):
        for kind in ("debug", "release"):
            path = root / folder / kind / "martlet"
            if path.is_file():
                yield from check_binary(root, path, sized=kind == "release")


def check_binary(root, path, sized):
    name = path.relative_to(root).as_posix()
    needed = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True).stdout
    for match in FOUNDATION.finditer(needed):
        yield name, 0, "no-foundation", f"links {match.group(1)}"
    if sized:
        size = stripped_size(path)
        if size > LIMIT:
            yield name, 0, "binary-size", f"{size} bytes stripped; at most {LIMIT}"


def stripped_size(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "binary"
        subprocess.run(["strip", "-o", str(copy), str(path)], capture_output=True)
        return (copy if copy.exists() else path).stat().st_size
