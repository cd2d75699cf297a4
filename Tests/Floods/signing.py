"""The issuer's side: keys under any number of ids, tokens signed with them, and the document that publishes them."""

import json
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Bench"))

from machine import run
from tokens import AUDIENCE, ISSUER, Signer, text

KNOWN = "KNOWN"
# A document with more than 20 keys is rejected. Removing a key invalidates all cached results, so they are removed together.
PUBLISHED = 18


class Issuer:
    """Two key pairs: one under a permanent id, one that is published under a new id at each rotation."""

    def __init__(self, folder):
        self.folder = folder
        self.signers, self.moduli = [], []
        for name in ("known.pem", "changing.pem"):
            run(["openssl", "genrsa", "-out", folder / name, "2048"])
            modulus = run(["openssl", "rsa", "-in", folder / name, "-noout", "-modulus"]).strip().split("=")[1]
            self.signers.append(Signer(folder / name))
            self.moduli.append(text(bytes.fromhex(modulus)).decode())
        self.rotations = 0
        self.set_delay(0.05)
        self.publish()

    def set_delay(self, seconds):
        """Sets the issuer's response time."""
        (self.folder / "delay").write_text(str(seconds))

    def publish(self):
        first = max(1, self.rotations - self.rotations % PUBLISHED)
        ids = [(KNOWN, 0)] + [(key_id(number), 1) for number in range(first, self.rotations + 1)]
        keys = [
            {"kty": "RSA", "kid": name, "use": "sig", "alg": "RS256", "e": "AQAB", "n": self.moduli[pair]} for name, pair in ids]
        (self.folder / "keys.new").write_text(json.dumps({"keys": keys}))
        os.replace(self.folder / "keys.new", self.folder / "keys.json")

    def rotate(self):
        """Publishes the second pair under an unused id.

        :returns: a function that makes tokens with it."""
        self.rotations += 1
        self.publish()
        number = self.rotations
        return lambda subject: self.token(subject, kid=key_id(number), pair=1)

    def token(self, subject, kid=KNOWN, pair=0, **claims):
        signed = unsigned(subject, kid, **claims)
        return (signed + b"." + text(self.signers[pair].sign(signed))).decode()


def key_id(number):
    return f"CHANGED{number:05}"


def unsigned(subject, kid, **claims):
    """Header and payload of a token, without a signature."""
    now = int(time.time())
    members = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 3600, "iat": now, "sub": subject, "auth_time": now, **claims}
    header = json.dumps({"kid": kid, "alg": "RS256"}, separators=(",", ":")).encode()
    return text(header) + b"." + text(json.dumps(members, separators=(",", ":")).encode())
