"""A client of the issuer that is no browser, and requests to the gateway."""

import base64
import hashlib
import html
import http.cookiejar
import json
import re
import secrets
import urllib.error
import urllib.parse
import urllib.request

from accounts import PASSWORD, USER

TIMEOUT = 20
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')


class _UpTo(urllib.request.HTTPRedirectHandler):
    """Follows redirects until the one to an address that nothing serves."""

    def __init__(self, end):
        self.end, self.reached = end, None

    def redirect_request(self, request, response, code, message, headers, url):
        if url.startswith(self.end):
            self.reached = url
            return None
        return super().redirect_request(request, response, code, message, headers, url)


class _Session:
    """A user's way through the issuer's pages, up to where they redirect to."""

    def __init__(self, end):
        self.end = _UpTo(end)
        self.opener = urllib.request.build_opener(self.end, urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def reach(self, url):
        """The address at the end; the user logs in and allows what is asked."""
        self.end.reached = None
        page, url = self._open(url)
        for _ in range(2):
            if self.end.reached:
                break
            own = {"username": USER, "password": PASSWORD} if 'name="username"' in page else {"allow": "Authorize"}
            fields = {name: html.unescape(value) for name, value in HIDDEN.findall(page)}
            page, url = self._open(url, urllib.parse.urlencode(fields | own).encode())
        assert self.end.reached, f"the issuer does not let the user through: {page[:1000]}"
        return self.end.reached

    def _open(self, url, form=None):
        _, text, url = self.send(url, form)
        return text, url

    def send(self, url, form=None):
        """The response, its text and its address, after redirects."""
        try:
            with self.opener.open(url, form, timeout=TIMEOUT) as response:
                return response, response.read().decode(), response.url
        except urllib.error.HTTPError as error:
            return error, error.read().decode(), url


class Visitor:
    """A user who signs in at the gateway with a browser that is none."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.session = _Session(f"{gateway.origin}/auth/callback/")

    def callback(self, provider):
        """The address that the issuer sends the browser back to."""
        return self.session.reach(f"{self.gateway.origin}/auth/start/{provider}?return_to=/{provider}/me")

    def open(self, callback):
        """Status and fields of the gateway's response."""
        response, _, _ = self.session.send(callback)
        return response.status, response.headers


class Client:
    """An app at the issuer, with the cookies of the user who uses it."""

    def __init__(self, issuer, settings):
        self.issuer, self.settings = issuer, settings
        self.session = _Session(settings["redirect_uri"])

    def tokens(self, scope="openid profile", resource=None, nonce=None):
        """The tokens of a code flow; the user logs in where the issuer asks for it."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        parameters = {
            "response_type": "code", "client_id": self.settings["id"], "redirect_uri": self.settings["redirect_uri"],
            "scope": scope, "state": "of-a-test", "code_challenge": challenge, "code_challenge_method": "S256"}
        parameters |= {"nonce": nonce} if nonce else {}
        # What the access token is for (RFC 8707).
        audience = {"resource": resource} if resource else {}
        reached = self.session.reach(f"{self.issuer.url}/authorize/?{urllib.parse.urlencode(parameters | audience)}")
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(reached).query)["code"][0]
        return self.post("token/", audience | {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.settings["redirect_uri"],
            "code_verifier": verifier})

    def post(self, path, form):
        """What an endpoint of the issuer says to this client; it authenticates with HTTP Basic."""
        pair = ":".join(urllib.parse.quote_plus(self.settings[name]) for name in ("id", "secret"))
        fields = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        request = urllib.request.Request(f"{self.issuer.url}/{path}", urllib.parse.urlencode(form).encode(), fields)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return json.loads(response.read() or b"{}")

    def revoke(self, token):
        self.post("revoke_token/", {"token": token})


def decoded(token):
    """Header and claims of a JWT, which are not verified."""
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def changed(token, **claims):
    """The token with other claims and the old signature."""
    header, payload, signature = token.split(".")
    text = json.dumps(decoded(token)[1] | claims, separators=(",", ":")).encode()
    return ".".join((header, base64.urlsafe_b64encode(text).decode().rstrip("="), signature))
