"""Identity tokens as Apple issues them, signed with a key of our own, and the key's document.

Python has no RSA, so OpenSSL's library signs, through ctypes: a third of a millisecond each. A pool of 100,000 is kept in a
file, one token per line, until its tokens are too old for a whole run.
"""

import base64
import ctypes
import hashlib
import json
import multiprocessing
import os
import time

from machine import Failed, run

KEY_ID = "BENCH2048A"
ISSUER = "https://appleid.apple.com"
AUDIENCE = "com.example.app"
LIFETIME = 24 * 3600
USABLE = 20 * 3600


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Signer:
    """RS256 with a private key in a PEM file, or EdDSA with one of Ed25519."""

    def __init__(self, path, is_edwards=False):
        openssl = ctypes.CDLL("libcrypto.so.3")
        for name in ("BIO_new_mem_buf", "PEM_read_bio_PrivateKey", "EVP_MD_CTX_new", "EVP_sha256"):
            getattr(openssl, name).restype = ctypes.c_void_p
        pem = path.read_bytes()
        buffer = ctypes.c_void_p(openssl.BIO_new_mem_buf(pem, len(pem)))
        self.key = ctypes.c_void_p(openssl.PEM_read_bio_PrivateKey(buffer, None, None, None))
        openssl.BIO_free(buffer)
        self.context = ctypes.c_void_p(openssl.EVP_MD_CTX_new())
        self.digest = None if is_edwards else ctypes.c_void_p(openssl.EVP_sha256())
        self.openssl = openssl
        if not self.key:
            raise Failed(f"OpenSSL cannot read {path}")

    def sign(self, data):
        length = ctypes.c_size_t(256)
        signature = ctypes.create_string_buffer(256)
        self.openssl.EVP_MD_CTX_reset(self.context)
        if self.openssl.EVP_DigestSignInit(self.context, None, self.digest, None, self.key) != 1:
            raise Failed("OpenSSL does not sign")
        if self.openssl.EVP_DigestSign(self.context, signature, ctypes.byref(length), data, ctypes.c_size_t(len(data))) != 1:
            raise Failed("OpenSSL does not sign")
        return signature.raw[:length.value]

    def token(self, number, issued, **changes):
        """The token of one user; `changes` replace claims."""
        random = hashlib.sha256(str(number).encode()).digest()
        claims = {
            "iss": ISSUER, "aud": AUDIENCE, "exp": issued + LIFETIME, "iat": issued,
            "sub": f"001234.{random[:16].hex()}.{number % 10000:04}", "c_hash": text(random[16:]).decode()[:22],
            "email": f"{random[:5].hex()}@privaterelay.appleid.com", "email_verified": True, "is_private_email": True,
            "auth_time": issued, "nonce_supported": True, "real_user_status": 2,
        }
        header = text(json.dumps({"kid": KEY_ID, "alg": "RS256"}, separators=(",", ":")).encode())
        payload = text(json.dumps({**claims, **changes}, separators=(",", ":")).encode())
        return (header + b"." + payload + b"." + text(self.sign(header + b"." + payload))).decode()


def subject_of(number):
    return f"001234.{hashlib.sha256(str(number).encode()).digest()[:16].hex()}.{number % 10000:04}"


class Tokens:
    """The key, its document and its certificate, and the pool of tokens, all in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.key, self.public = folder / "key.pem", folder / "key.pub.pem"
        self.certificate, self.document = folder / "key.crt.pem", folder / "keys.json"
        self.pool = folder / "tokens"
        if not self.document.exists():
            self.make_key()

    def make_key(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        run(["openssl", "genrsa", "-out", self.key, "2048"])
        run(["openssl", "rsa", "-in", self.key, "-pubout", "-out", self.public])
        run(["openssl", "req", "-x509", "-key", self.key, "-subj", "/CN=bench", "-days", "30", "-out", self.certificate])
        modulus = run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"]).strip().split("=")[1]
        key = {"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256", "e": "AQAB",
               "n": text(bytes.fromhex(modulus)).decode()}
        self.document.write_text(json.dumps({"keys": [key]}))

    def need(self, count):
        """Fills the pool with the given number of recent tokens."""
        young = self.pool.exists() and time.time() - self.pool.stat().st_mtime < USABLE
        if young and self.length() >= count:
            return
        issued = int(time.time()) - 1
        parts = min(len(os.sched_getaffinity(0)), 8)
        names = [self.folder / f"tokens.{part}" for part in range(parts)]
        workers = [
            multiprocessing.Process(
                target=self.write_part, args=(names[part], count * part // parts, count * (part + 1) // parts, issued),
                daemon=True)
            for part in range(parts)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if any(worker.exitcode for worker in workers):
            raise Failed("the tokens could not be signed")
        with open(self.folder / "tokens.new", "wb") as pool:
            for name in names:
                pool.write(name.read_bytes())
                name.unlink()
        os.replace(self.folder / "tokens.new", self.pool)

    def write_part(self, name, first, end, issued):
        signer = Signer(self.key)
        with open(name, "w") as part:
            for number in range(first, end):
                part.write(signer.token(number, issued) + "\n")

    def length(self):
        with open(self.pool, "rb") as pool:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: pool.read(1 << 20), b""))

    def one(self):
        """The pool's first token, which is user 0's."""
        with open(self.pool) as pool:
            return pool.readline().strip()
