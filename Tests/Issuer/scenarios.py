"""What the provider `oidc` does with the tokens, the pages and the outages of a real issuer; in this order."""

import json
import time
import urllib.parse

import martlet
from accounts import API, EMAIL, PASSWORD, SUBJECT, USER
from client import Client, Visitor, changed, decoded
from webdriver import wait

SCENARIOS = []


def scenario(title, needs_browser=False):
    """Registers a scenario; `needs_browser`: it is played in Chromium."""

    def add(function):
        SCENARIOS.append((title, function, needs_browser))
        return function

    return add


class Stage:
    """The issuer, the gateway, and the apps that get tokens from the one for the other."""

    def __init__(self, issuer, gateway, clients, browser):
        self.issuer, self.gateway, self.browser = issuer, gateway, browser
        self.app, self.other, self.hmac, self.jwt = (Client(issuer, clients[name]) for name in ("app", "other", "hmac", "jwt"))

    def opaque(self):
        """A new access token for the API that says nothing by itself."""
        return self.app.tokens(resource=API)["access_token"]

    def accepts(self, path, token, subject):
        response = self.gateway.get(path, token)
        assert response.status == 200, f"{path}: {response.status}, {self.gateway.reason(response)}"
        found = response.header("x-subject")
        assert found == subject, f"the subject is {found}, not {subject}"
        return response

    def rejects(self, path, token, reason, status=401, code="credential_invalid"):
        response = self.gateway.get(path, token)
        found = (response.status, response.code, self.gateway.reason(response))
        assert found == (status, code, reason), f"{path}: {found}, not {(status, code, reason)}"
        return response

    def within(self, seconds, function, *arguments):
        """Repeats an assertion until it holds. :returns: after how many seconds."""
        began = time.monotonic()
        while True:
            try:
                function(*arguments)
                return time.monotonic() - began
            except AssertionError:
                if time.monotonic() - began > seconds:
                    raise
                time.sleep(0.1)


# Bearer tokens


@scenario("an ID token is accepted as a bearer token, with its claims")
def id_token(stage):
    response = stage.accepts("/ids/me", stage.app.tokens()["id_token"], f"ids:{SUBJECT}")
    assert response.header("x-name") == USER, response.document
    assert "authorization" not in response.document["headers"], "the upstream gets the token"


@scenario("an ID token for another client, a changed one, one with an HMAC, and an opaque token are 401")
def wrong_tokens(stage):
    tokens = stage.app.tokens()
    stage.rejects("/ids/me", stage.other.tokens()["id_token"], "oidc.bad_audience")
    stage.rejects("/ids/me", changed(tokens["id_token"], sub="2"), "oidc.bad_signature")
    stage.rejects("/ids/me", stage.hmac.tokens()["id_token"], "oidc.alg_not_allowed")
    # Not even sent to the issuer: this provider has no introspection.
    stage.rejects("/ids/me", tokens["access_token"], "oidc.malformed")


@scenario("an access token of RFC 9068 is accepted, by its scopes; an ID token in its place is 401")
def access_token(stage):
    both = stage.jwt.tokens("openid read", API)
    assert decoded(both["access_token"])[0]["typ"] == "at+jwt", "the issuer makes other access tokens"
    stage.accepts("/access/me", both["access_token"], f"access:{SUBJECT}")
    assert stage.gateway.get("/access/read/me", both["access_token"]).status == 200
    without = stage.jwt.tokens("openid profile", API)["access_token"]
    stage.accepts("/access/me", without, f"access:{SUBJECT}")
    assert stage.gateway.get("/access/read/me", without).status == 403, "accepted without the scope"
    stage.rejects("/access/me", both["id_token"], "oidc.header_not_allowed")
    stage.rejects("/access/me", stage.jwt.tokens("openid", "https://other.example")["access_token"], "oidc.bad_audience")


# Introspection


@scenario("an opaque token is accepted, remembered, and 401 once it is revoked and the cache has ended")
def revoked(stage):
    token, before = stage.opaque(), stage.gateway.introspections()
    for _ in range(8):
        stage.accepts("/opaque/me", token, f"opaque:{USER}")
    asked = stage.gateway.introspections() - before
    # Each event loop has a cache of its own.
    assert 1 <= asked <= 4, f"asked {asked} times about one token"
    stage.app.revoke(token)
    unseen = stage.opaque()
    stage.app.revoke(unseen)
    stage.rejects("/opaque/me", unseen, "oidc.inactive")
    time.sleep(martlet.INTROSPECTION + 0.5)
    for _ in range(4):
        stage.rejects("/opaque/me", token, "oidc.inactive")


@scenario("an opaque token that is for another API, for none, or unknown is 401")
def wrong_opaque_tokens(stage):
    stage.rejects("/opaque/me", stage.app.tokens()["access_token"], "oidc.bad_audience")
    stage.rejects("/opaque/me", stage.app.tokens(resource="https://other.example")["access_token"], "oidc.bad_audience")
    stage.rejects("/opaque/me", "opq_" + "a" * 30, "oidc.inactive")


@scenario("a wrong secret of the gateway is 503, and says nothing about the token")
def refused(stage):
    stage.rejects("/refused/me", stage.opaque(), "oidc.introspection_refused", 503, "auth_unavailable")


@scenario("check --online finds the wrong secret, and nothing else")
def check_online(stage):
    code, text = stage.gateway.check_online()
    lines = [one for one in text.splitlines() if one.startswith("provider ")]
    failed = [one for one in lines if ": ok" not in one]
    assert code == 69 and len(failed) == 1 and failed[0].startswith("provider refused introspection"), text
    for name in ("ids", "access", "opaque", "website", "profile"):
        assert any(one.startswith(f"provider {name} keys: ok") for one in lines), text


# Browsers


def enter(stage, provider):
    """From a page that needs a session to the issuer's own page."""
    stage.browser.clear()
    stage.browser.go(f"{stage.gateway.origin}/{provider}/me?page=2")
    stage.browser.click(f"a[href^='/auth/start/{provider}']")
    log_in(stage)


def log_in(stage):
    wait(lambda: stage.browser.url.startswith(f"http://localhost:{stage.issuer.port}/login"), "the issuer's login")
    stage.browser.type("input[name=username]", USER)
    stage.browser.type("input[name=password]", PASSWORD)
    stage.browser.click("button")


def arrived(stage, provider):
    """What the upstream sees of the browser."""
    address = f"{stage.gateway.origin}/{provider}/me?page=2"
    wait(lambda: stage.browser.url == address, f"the way back, at {stage.browser.url}")
    return json.loads(wait(lambda: stage.browser.run("return document.body.innerText"), "a response"))["headers"]


def session(stage):
    return next((one for one in stage.browser.cookies() if one["name"] == "martlet"), None)


@scenario("a browser signs in at the issuer's page, comes back to where it was, and has a session", needs_browser=True)
def website(stage):
    enter(stage, "website")
    stage.browser.click("input[name=allow]")
    headers = arrived(stage, "website")
    assert (headers["x-subject"], headers["x-name"]) == (f"website:{SUBJECT}", USER), headers
    assert "x-email" not in headers, "a claim of userinfo, without userinfo"
    assert "martlet" not in headers.get("cookie", ""), "the upstream gets the cookie"
    assert session(stage)["httpOnly"], "no cookie of a session"
    stage.browser.reload()
    assert arrived(stage, "website")["x-subject"] == f"website:{SUBJECT}"


@scenario("with userinfo its claims are added, but not those about the authentication", needs_browser=True)
def profile(stage):
    enter(stage, "profile")
    stage.browser.click("input[name=allow]")
    headers = arrived(stage, "profile")
    assert (headers["x-subject"], headers["x-name"], headers["x-email"]) == (f"profile:{SUBJECT}", USER, EMAIL), headers
    assert "x-acr" not in headers, "acr of userinfo"


@scenario("cancelled at the issuer's page, nobody is signed in", needs_browser=True)
def cancelled(stage):
    enter(stage, "website")
    stage.browser.click("#authorizationForm input[type=submit]:not([name=allow])")
    wait(lambda: stage.browser.has(".notice.note"), f"the sign-in page, at {stage.browser.url}")
    assert not session(stage), "a session after cancelling"


@scenario("an app posts its ID token and gets a session, if the nonce is that of the token")
def app(stage):
    token = stage.app.tokens(nonce="n-of-the-app")["id_token"]
    wrong = stage.gateway.post("/auth/login/ids", {"id_token": token, "nonce": "another"})
    assert (wrong.status, stage.gateway.reason(wrong)) == (401, "oidc.nonce_mismatch"), (wrong.status, wrong.document)
    session = stage.gateway.post("/auth/login/ids", {"id_token": token, "nonce": "n-of-the-app"})
    assert session.status == 200, (session.status, session.document)
    stage.accepts("/ids/me", session.document["access_token"], f"ids:{SUBJECT}")
    other = stage.gateway.post("/auth/login/ids", {"id_token": stage.other.tokens()["id_token"]})
    assert (other.status, stage.gateway.reason(other)) == (401, "oidc.bad_audience"), (other.status, other.document)


@scenario("a code that the issuer does not know is 400, and one whose issuer is away is 503")
def codes(stage):
    visitor = Visitor(stage.gateway)
    callback = visitor.callback("website")
    status, _ = visitor.open(callback.replace("code=", "code=x"))
    assert status == 400, f"status {status}"
    wait(lambda: "oidc.code_rejected" in stage.gateway.logged(), "the reason in the log")
    callback = visitor.callback("website")
    stage.issuer.stop()
    try:
        status, fields = visitor.open(callback)
        assert (status, "Retry-After" in fields) == (503, True), (status, dict(fields))
    finally:
        stage.issuer.start()
    wait(lambda: "oidc.api_unreachable" in stage.gateway.logged(), "the reason in the log")


@scenario("a response of another issuer is 400: iss has to be there, and to be this one's")
def mixed_up(stage):
    visitor, before = Visitor(stage.gateway), stage.gateway.logged().count("oidc.bad_issuer")
    for change in (lambda _: "https://other.example", lambda _: None):
        callback = urllib.parse.urlsplit(visitor.callback("website"))
        fields = dict(urllib.parse.parse_qsl(callback.query))
        assert fields["iss"] == stage.issuer.url, fields
        fields["iss"] = change(fields["iss"])
        query = urllib.parse.urlencode({name: value for name, value in fields.items() if value})
        status, _ = visitor.open(callback._replace(query=query).geturl())
        assert status == 400, f"status {status}"
    wait(lambda: stage.gateway.logged().count("oidc.bad_issuer") == before + 2, "the reasons in the log")


# Outages and keys


@scenario("without the issuer opaque tokens are 503, and JWTs accepted; with it again all are")
def outage(stage):
    token, opaque = stage.app.tokens()["id_token"], stage.opaque()
    stage.issuer.stop()
    try:
        stage.rejects("/opaque/me", opaque, "oidc.introspection_unreachable", 503, "auth_unavailable")
        stage.accepts("/ids/me", token, f"ids:{SUBJECT}")
    finally:
        stage.issuer.start()
    stage.within(15, stage.accepts, "/opaque/me", opaque, f"opaque:{USER}")


@scenario("expired tokens are 401")
def expired(stage):
    stage.issuer.restart(token_seconds=6)
    try:
        tokens = stage.app.tokens(resource=API)
        end = decoded(tokens["id_token"])[1]["exp"]
        # A start of the issuer may take as long as the tokens live, so it goes on meanwhile.
        stage.accepts("/ids/me", tokens["id_token"], f"ids:{SUBJECT}")
        stage.accepts("/opaque/me", tokens["access_token"], f"opaque:{USER}")
        # The issuer counts fractions of a second, and makes the access token a moment later.
        time.sleep(max(0, end - time.time()) + 2)
        stage.rejects("/ids/me", tokens["id_token"], "oidc.expired")
        stage.rejects("/opaque/me", tokens["access_token"], "oidc.inactive")
    finally:
        stage.issuer.restart()


@scenario("a token that is signed with a new key is accepted without a restart, and one with the old key too")
def new_key(stage):
    old = stage.app.tokens()["id_token"]
    stage.issuer.new_key()
    stage.issuer.restart()
    new = stage.app.tokens()["id_token"]
    assert decoded(old)[0]["kid"] != decoded(new)[0]["kid"], "the issuer has signed with the old key"
    stage.within(martlet.UNKNOWN_KEY + 10, stage.accepts, "/ids/me", new, f"ids:{SUBJECT}")
    stage.accepts("/ids/me", old, f"ids:{SUBJECT}")


@scenario("a token with a key that the issuer has removed is 401 when the keys are fetched again")
def removed_key(stage):
    old = stage.app.tokens()["id_token"]
    stage.accepts("/ids/me", old, f"ids:{SUBJECT}")
    stage.issuer.new_key()
    del stage.issuer.keys[1:]
    stage.issuer.restart()
    stage.within(martlet.KEYS + 10, stage.rejects, "/ids/me", old, "oidc.unknown_key")
    stage.accepts("/ids/me", stage.app.tokens()["id_token"], f"ids:{SUBJECT}")
