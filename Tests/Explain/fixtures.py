"""What all configurations of a run share: certificates, tokens of an issuer, accounts and API keys, made once."""

import base64
import json
import os
import secrets
import shutil
import subprocess
import time

PASSWORD = "correct horse battery staple"
ADMIN_TOKEN = "explain-admin-token-0123456789abcdef"
CURVE = ["-pkeyopt", "ec_paramgen_curve:P-256"]


class Failure(Exception):
    pass


def run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=120, **options)


def must(command, **options):
    result = run(command, **options)
    if result.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {result.stdout.decode()}{result.stderr.decode()}")
    return result.stdout


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A key on P-256, in a file, with which openssl signs."""

    def __init__(self, path):
        self.path = path
        must(["openssl", "genpkey", "-algorithm", "EC", *CURVE, "-out", path])
        public = must(["openssl", "pkey", "-in", path, "-pubout", "-outform", "DER"])[-64:]
        self.jwk = {"kty": "EC", "crv": "P-256", "x": encoded(public[:32]), "y": encoded(public[32:])}

    def token(self, header, claims):
        """A token in the compact form."""
        text = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in ({"alg": "ES256", **header}, claims))
        der = must(["openssl", "dgst", "-sha256", "-sign", self.path], input=text.encode())
        length = der[3]
        numbers = der[4:4 + length], der[6 + length:]
        raw = b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in numbers)
        return f"{text}.{encoded(raw)}"

    def proof(self, method, url):
        """A proof where a token is issued (RFC 9449)."""
        claims = {"htm": method, "htu": url, "iat": int(time.time()), "jti": secrets.token_hex(8)}
        return self.token({"typ": "dpop+jwt", "jwk": self.jwk}, claims)


PROVIDERS = """\
providers:
  password: { kind: password, users: accounts, hash: { memory: 64KiB, iterations: 1 }, throttle: { attempts: 100000, per_address: { attempts: 1000000 } } }
  keys: { kind: api_key, keys_file: keys.jsonl }
  machines: { kind: mtls, identity: san_uri, ca_file: ../ca.pem }
  company: { kind: oidc, issuer: "https://id.example.com", jwks_file: ../issuer.json, audiences: [api], algorithms: [ES256] }
  gone: { kind: oidc, issuer: "https://gone.example.com", jwks_url: "http://127.0.0.1:9/keys", audiences: [api], algorithms: [ES256] }
"""


class Fixtures:
    """The files in a folder, and the credentials that they accept."""

    def __init__(self, martlet, folder):
        self.martlet, self.folder = martlet, folder
        self.make_certificates()
        self.make_tokens()
        self.make_accounts()

    def make_certificates(self):
        """An authority, the gateway's certificate, and one of a client; a stranger's is not for clients."""
        folder = self.folder
        request = ["openssl", "req", "-newkey", "ec", *CURVE, "-nodes"]
        must([*request, "-x509", "-days", "2", "-subj", "/CN=ca", "-keyout", folder / "ca.key", "-out", folder / "ca.pem"])
        for name, purpose, uris in (("server", "serverAuth", 1), ("client", "clientAuth", 1), ("stranger", "clientAuth", 2)):
            names = ",".join(["DNS:localhost", "IP:127.0.0.1"] + [f"URI:spiffe://example/{name}{one}" for one in range(uris)])
            (folder / f"{name}.ext").write_text(f"extendedKeyUsage={purpose}\nsubjectAltName={names}\n")
            must([*request, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"])
            must(["openssl", "x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
                  "-CAcreateserial", "-days", "2", "-extfile", folder / f"{name}.ext", "-out", folder / f"{name}.pem"])

    def make_tokens(self):
        key, other = Key(self.folder / "issuer.pem"), Key(self.folder / "other.pem")
        Key(self.folder / "assertion.pem")
        self.proof_key = Key(self.folder / "proof.pem")
        (self.folder / "issuer.json").write_text(json.dumps({"keys": [{**key.jwk, "kid": "1", "alg": "ES256", "use": "sig"}]}))
        now = int(time.time())

        def token(signer=key, kid="1", **claims):
            given = {"iss": "https://id.example.com", "aud": "api", "sub": "eve", "iat": now, "exp": now + 7200, "auth_time": now}
            return signer.token({"kid": kid}, {name: value for name, value in {**given, **claims}.items() if value is not None})

        self.good_tokens = [
            token(), token(sub="root", role="admin", level=3, teams=["a", "b"], plan="free", acr="mfa"),
            token(sub="anna", role="user", level=1, plan="paid", email="anna@example.com", email_verified=True),
            token(sub="zoë ü", role=7, teams=["c"])]
        self.bad_tokens = [
            token(exp=now - 60), token(aud="other"), token(iss="https://other.example.com"), token(signer=other), token(kid="2"),
            token(sub=None), token(nbf=now + 3600), token(iat=now - 90_000), "a.b.c", token(iss="https://gone.example.com")]

    def make_accounts(self):
        """Accounts and keys, which each configuration gets a copy of."""
        folder = self.folder / "accounts"
        folder.mkdir()
        configuration = folder / "config.yaml"
        configuration.write_text("version: 1\naccounts: { url: \"sqlite:accounts.db\" }\nsessions: { path: /auth }\n" + PROVIDERS
                                 + "upstreams: { api: { endpoints: [\"builtin:echo\"] } }\nroutes: [{ name: all, upstream: api, auth: none }]\n")

        def martlet(*words, text=""):
            return must([self.martlet, *words, "--config", "config.yaml"], cwd=folder, input=text.encode()).decode().strip()

        for name in ("ada", "bob"):
            martlet("user", "add", name, text=PASSWORD + "\n")
        def key(*words):
            return martlet("key", "create", "--provider", "keys", *words)

        self.good_keys = [
            key("--subject", "robot"), key("--subject", "boss", "--claims", "role=admin", "--claims", "level:=3", "--scope", "read,write"),
            key("--subject", "guest", "--claims", "plan=free", "--claims", "teams=a,b")]
        revoked = key("--subject", "former")
        martlet("key", "revoke", revoked[4:20])
        self.bad_keys = [revoked, "mak_" + "0" * 88, self.good_keys[0][:-1] + "z", "mak_"]
        self.files = [one for one in folder.iterdir() if one.name.startswith("accounts.db") or one.name == "keys.jsonl"]

    def copy(self, folder):
        for one in self.files:
            shutil.copy(one, folder / one.name)
        os.chmod(folder / "keys.jsonl", 0o600)
        (folder / "admin-token").write_text(ADMIN_TOKEN + "\n")
        os.chmod(folder / "admin-token", 0o600)
