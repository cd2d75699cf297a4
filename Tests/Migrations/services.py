"""What a gateway needs around it: keys and tokens of issuers, and a server for upstreams and sign-ins."""

import base64
import http.server
import json
import secrets
import socket
import threading
import time
import urllib.parse

TIMEOUT = 30


class Unavailable(Exception):
    """A requirement is missing on this machine."""


class Failed(Exception):
    """The gateway does not start, or a request does not come back."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value):
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Key:
    """An RSA key of an issuer."""

    def __init__(self, name):
        from cryptography.hazmat.primitives.asymmetric import rsa
        self.name, self.private = name, rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def key_set(self):
        public = self.private.public_key().public_numbers()
        named = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.name}
        return {"keys": [{**named, "n": number(public.n), "e": number(public.e)}]}

    def sign(self, claims, name=None):
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding
        header = {"alg": "RS256", "typ": "JWT", "kid": name or self.name}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
        return text + "." + base64url(self.private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))


class Issuers:
    """Keys by the name of a provider, made where they are first needed; and the codes of sign-ins in progress."""

    def __init__(self):
        self.keys, self.codes = {}, {}

    def key(self, provider):
        if provider not in self.keys:
            self.keys[provider] = Key(provider)
        return self.keys[provider]

    def token(self, provider, claims, times, forged=False):
        now = int(time.time())
        claims = {"iat": now, "exp": now + 600, **claims}
        claims.update({name: now + seconds if seconds is not None else None for name, seconds in times.items()})
        claims = {name: value for name, value in claims.items() if value is not None}
        return self.key("other" if forged else provider).sign(claims, provider)

    def code(self, provider, claims, times):
        code = secrets.token_urlsafe(16)
        self.codes[code] = (provider, claims, times)
        return code


class Server:
    """Responds to what the gateway forwards with the request as it came, and exchanges the codes of sign-ins.

    A request's `Host` is the client's, so that each upstream of a configuration has a port of its own."""

    def __init__(self, issuers):
        self.issuers, self.servers = issuers, {}

    def port(self, shown):
        """The port of this run for one that a configuration names."""
        if shown not in self.servers:
            handler = type("Handler", (Handler,), {"shown": shown, "issuers": self.issuers})
            self.servers[shown] = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            threading.Thread(target=self.servers[shown].serve_forever, daemon=True).start()
        return self.servers[shown].server_address[1]

    def close(self):
        for server in self.servers.values():
            server.shutdown()
            server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = TIMEOUT

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.shown == "issuer":
            return self.exchange(dict(urllib.parse.parse_qsl(body.decode())))
        self.respond(200, {"upstream": self.shown, "path": self.path, "fields": self.headers.items()})

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = handle_any

    def exchange(self, form):
        made = self.issuers.codes.pop(form.get("code"), None)
        if not made:
            return self.respond(400, {"error": "invalid_grant"})
        token = self.issuers.token(*made)
        self.respond(200, {"access_token": "opaque", "token_type": "Bearer", "expires_in": 600, "id_token": token})

    def respond(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass
