"""The compose file: valid for the tools that read such files, and with configurations that are valid, too."""

import pathlib
import shutil
import tempfile

from roots import ROOT, Failure, Unavailable, sh

FILE = ROOT / "Examples/compose.yaml"


def check():
    said = []
    if shutil.which("docker-compose"):
        sh("docker-compose", "--file", FILE, "config", "--quiet")
        said.append("valid for docker-compose")
    elif shutil.which("docker"):
        sh("docker", "compose", "--file", FILE, "config", "--quiet")
        said.append("valid for docker compose")
    names = (".build-release/release/martlet", ".build/debug/martlet")
    martlet = next((ROOT / name for name in names if (ROOT / name).is_file()), None)
    if martlet:
        with tempfile.TemporaryDirectory() as folder:
            check_configurations(martlet, pathlib.Path(folder))
        said.append("both configurations pass martlet check")
    if not said:
        raise Unavailable("there is neither docker-compose nor an executable")
    return "; ".join([*said, "untested: its images, which come from a registry"])


def check_configurations(martlet, folder):
    """With the secrets that `prepare` makes, in place of those of a container."""
    shutil.copytree(ROOT / "Examples/compose", folder / "compose", ignore=shutil.ignore_patterns("secrets"))
    sh(folder / "compose/prepare")
    again = sh(folder / "compose/prepare", check=False)
    if again.returncode == 0:
        raise Failure("prepare replaces secrets that are in use")
    for name in ("config.yaml", "api.yaml"):
        file = folder / "compose" / name
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("/run/secrets/", f"{folder}/compose/secrets/"), encoding="utf-8")
        sh(martlet, "check", "--config", file)
