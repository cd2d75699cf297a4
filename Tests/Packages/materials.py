"""The list of what is linked: valid SPDX by its own tools from PyPI, and complete by what the executable asks for."""

import json
import re
import tempfile

from roots import ROOT, Failure, Unavailable, sh

VALIDATOR = "spdx-tools==0.8.5"


def check(file):
    document = json.loads(file.read_text(encoding="utf-8"))
    names = {package["name"] for package in document["packages"]}
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", sh("readelf", "-d", ROOT / ".build-release/release/martlet").stdout))
    linked = [one for one in document["relationships"] if one["relationshipType"] == "DYNAMIC_LINK"]
    # libssl and libcrypto, libc, libm and the loader are of one package each.
    if not {"martlet", "swift-runtime", "libssl3", "libc6"} <= names or not len(needed) - 4 <= len(linked) <= len(needed):
        raise Failure(f"{len(linked)} packages are linked, for {len(needed)} libraries: {sorted(names)}")
    unlicensed = [one["name"] for one in document["packages"] if one["licenseDeclared"] == "NOASSERTION"]
    if unlicensed:
        raise Failure(f"no license is declared for {', '.join(unlicensed)}")
    said = f"{len(document['packages'])} packages"
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        sh("python3", "-m", "venv", folder)
        done = sh(python, "-m", "pip", "install", "--quiet", VALIDATOR, check=False)
        if done.returncode:
            raise Unavailable(f"{said}; without {VALIDATOR}, which cannot be had, whether they are valid SPDX is not known")
        done = sh(f"{folder}/bin/pyspdxtools", "-i", file, check=False)
        if done.returncode:
            raise Failure(f"{done.stdout}{done.stderr}")
    return f"{said}, valid SPDX 2.3"
