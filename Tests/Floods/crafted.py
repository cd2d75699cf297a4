"""Requests of floods that are made for one gateway: signed ones, and those that need something of it first."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import socket
import time

from stage import PASSWORD
from tokens import Signer, text

# More than one owner may mark in the store, and more than the budget of proofs at logins.
MARKS, SIGN_INS, LOGINS = 14_000, 7000, 3000
BATCH = 50
HEAD = "Host: a.test\r\n"


def exchange(port, requests):
    """Sends requests over one connection, some at a time.

    :returns: the head and the body of each response."""
    found = []
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as reader:
        for first in range(0, len(requests), BATCH):
            some = requests[first:first + BATCH]
            connection.sendall(b"".join(some))
            found += [read(reader) for _ in some]
    return found


def read(reader):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            raise ConnectionError("the gateway closed the connection")
        head += line
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return head, reader.read(int(length[1])) if length else b""


def login(gateway, user, field=""):
    body = json.dumps({"username": user, "password": PASSWORD})
    request = (f"POST /auth/login/password HTTP/1.1\r\n{HEAD}{field}Content-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}")
    [(head, said)] = exchange(gateway.port, [request.encode()])
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"{user} cannot log in: {head.decode(errors='replace')}")
    return json.loads(said)["access_token"]


def profile_changes(gateway):
    """Changes of one user's profile."""
    token, body = login(gateway, "flood"), json.dumps({"name": "Flood"})
    return [(f"PATCH /auth/profile HTTP/1.1\r\n{HEAD}Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
             f"Content-Length: {len(body)}\r\n\r\n{body}").encode()]


def cancelled_sign_ins(gateway):
    """Returns from the issuer of sign-ins that were started and cancelled."""
    start = f"GET /auth/start/apple HTTP/1.1\r\n{HEAD}\r\n".encode()
    return [cancelled(head) for head, _ in exchange(gateway.port, [start] * SIGN_INS)]


def cancelled(started):
    """The return from the issuer, of a sign-in that was started with this response."""
    cookie, state = re.search(rb"(?i)set-cookie: ([^;]+)", started), re.search(rb"state=([\w-]+)", started)
    body = b"error=user_cancelled_authorize&state=" + state[1]
    return (b"POST /auth/callback/apple HTTP/1.1\r\nHost: a.test\r\nAccept: text/html\r\nCookie: " + cookie[1]
            + b"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class Prover:
    """A client's key, and proofs that it has it."""

    def __init__(self, gateway):
        self.signer = Signer(gateway.stage.folder / "prover.pem", is_edwards=True)
        public = text((gateway.stage.folder / "prover.pub").read_bytes()[-32:]).decode()
        header = {"typ": "dpop+jwt", "alg": "EdDSA", "jwk": {"kty": "OKP", "crv": "Ed25519", "x": public}}
        self.header = text(json.dumps(header).encode())

    def proof(self, method, path, token=None):
        claims = {"jti": secrets.token_hex(9), "htm": method, "htu": f"http://a.test{path}", "iat": int(time.time())}
        if token:
            claims["ath"] = text(hashlib.sha256(token.encode()).digest()).decode()
        signed = self.header + b"." + text(json.dumps(claims).encode())
        return (signed + b"." + text(self.signer.sign(signed))).decode()


def proofs(gateway):
    """Requests with a bound token of one user, each with a proof of its own."""
    prover = Prover(gateway)
    token = login(gateway, "flood", f"DPoP: {prover.proof('POST', '/auth/login/password')}\r\n")
    return [
        (f"GET /v1/orders HTTP/1.1\r\n{HEAD}Authorization: DPoP {token}\r\n"
         f"DPoP: {prover.proof('GET', '/v1/orders', token)}\r\n\r\n").encode() for _ in range(MARKS)]


def login_proofs(gateway):
    """Logins with a wrong password, each with a proof that holds."""
    prover, body = Prover(gateway), json.dumps({"username": "nobody", "password": "wrong"})
    return [
        (f"POST /auth/login/password HTTP/1.1\r\n{HEAD}DPoP: {prover.proof('POST', '/auth/login/password')}\r\n"
         f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode() for _ in range(LOGINS)]


def signatures(gateway):
    """Requests of one partner, each with a nonce of its own."""
    secret = base64.b64decode((gateway.stage.folder / "partner.secret").read_text())
    return [signed("GET", "/v1/orders", secret) for _ in range(MARKS)]


def signed(method, path, secret, partner="partner", host="a.test"):
    covered = (f'("@method" "@authority" "@path" "@query");created={int(time.time())};keyid="{partner}"'
               f';nonce="{secrets.token_hex(9)}"')
    base = (f'"@method": {method}\n"@authority": {host}\n"@path": {path}\n"@query": ?\n"@signature-params": {covered}')
    mac = base64.b64encode(hmac.new(secret, base.encode(), "sha256").digest()).decode()
    return (f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nSignature-Input: sig={covered}\r\n"
            f"Signature: sig=:{mac}:\r\n\r\n").encode()
