"""The flows. Each function is one, and gets a stage whose browser has no cookies."""

import base64
import hashlib
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request

from gateway import PASSWORD, USER, Client, Configured
from webdriver import wait

FLOWS = []
NATIVE = "com.example.app:/cb"
ENTER, TAB = 13, 9


def flow(title, once=False):
    """Registers a flow; with `once` it is played in English alone."""

    def add(function):
        FLOWS.append((title, function, once))
        return function

    return add


# Signing in


@flow("a page without a session leads to the sign-in page, and a program gets 401")
def redirected(stage):
    stage.open_sign_in("/me/orders?page=2")
    assert stage.path == "/auth/sign-in?return_to=/me/orders%3Fpage%3D2", stage.path
    stage.expect(200, "form")
    stage.look("sign-in")
    status, fields, _ = Client(stage.gateway).send("/me")
    assert status == 401 and fields["WWW-Authenticate"], status
    stage.by_password()
    assert stage.subject("/me/orders?page=2")


@flow("sign-in with Apple")
def apple(stage):
    stage.open_sign_in()
    stage.by_apple(stage.new_name("apple"))
    first = stage.subject()
    assert first and first.startswith("usr_"), first
    callback = next(one for one in stage.browser.responses() if "/auth/callback/apple" in one.url)
    assert (callback.method, callback.status) == ("POST", 303), (callback.method, callback.status)
    assert stage.cookie(), "no cookie after the sign-in"
    wait(lambda: not stage.attempts(), "the end of the attempt's cookie", 15)
    assert stage.browser.run("return document.cookie") == "", "a script can read a cookie"


@flow("sign-in with WeChat on a desktop, by its QR page")
def wechat(stage):
    stage.open_sign_in()
    stage.browser.click("a.button.wechat")
    wait(lambda: "/connect/qrconnect" in stage.browser.url, "the QR page")
    stage.on_wechat(stage.new_name("wechat"))
    assert stage.subject()


@flow("sign-in with WeChat inside WeChat; it is the same person as on a desktop")
def inside_wechat(stage):
    name = stage.new_name("inside")
    stage.open_sign_in()
    stage.by_wechat(name)
    desktop = stage.subject()
    stage.browser.clear()
    stage.pretend_wechat()
    stage.open_sign_in()
    stage.browser.click("a.button.wechat")
    wait(lambda: "/connect/oauth2/authorize" in stage.browser.url, "the page inside WeChat")
    stage.on_wechat(name)
    assert stage.subject() == desktop


def cancel(stage, start, name):
    stage.open_sign_in()
    start()
    stage.expect(200, ".notice.note", "before it was complete")
    stage.look(name)
    assert not stage.cookie() and not stage.attempts(), "a cookie after cancelling"
    # The page keeps where the person wanted to go.
    stage.by_password()
    assert stage.subject()


@flow("cancelled at Apple")
def cancelled_apple(stage):
    cancel(stage, lambda: stage.by_apple("", "cancel"), "cancelled-apple")


@flow("cancelled at WeChat on a desktop")
def cancelled_wechat(stage):
    cancel(stage, lambda: stage.by_wechat("", "cancel"), "cancelled-wechat")


@flow("cancelled inside WeChat")
def cancelled_inside_wechat(stage):
    stage.pretend_wechat()
    cancel(stage, lambda: stage.by_wechat("", "cancel"), "cancelled-inside-wechat")


@flow("sign-in with a password, by the keyboard alone")
def keyboard(stage):
    stage.open_sign_in()
    stage.browser.run("document.querySelector('#username').focus()")
    stage.browser.devtools("Input.insertText", text=USER)
    stage.browser.press("Tab", TAB)
    stage.browser.devtools("Input.insertText", text=PASSWORD)
    stage.browser.press("Enter", ENTER)
    assert stage.subject()


@flow("a wrong password")
def wrong_password(stage):
    stage.open_sign_in()
    stage.by_password(USER, "not the password")
    stage.expect(401, ".notice.error", "do not match")
    assert stage.browser.run("return [username.value, password.value, document.activeElement.id]") == [USER, "", "password"]
    stage.look("wrong-password")
    stage.browser.type("#password", PASSWORD)
    stage.browser.click("form button.primary")
    assert stage.subject()


@flow("too many wrong passwords")
def throttled(stage):
    stage.open_sign_in()
    name = stage.new_name("guessed")
    for _ in range(30):
        before = stage.browser.run("return performance.timeOrigin")
        stage.by_password(name, "a guess")
        wait(lambda: stage.browser.run("return performance.timeOrigin") != before, "the response")
        if wait(lambda: stage.status, "its status") == 429:
            break
    stage.expect(429, ".notice.error", "Too many attempts. Try again in")
    stage.look("throttled")
    last = [one for one in stage.browser.responses() if one.status == 429][-1]
    assert int(last.fields["retry-after"]) > 0, last.fields
    # Others are not affected.
    stage.by_password()
    assert stage.subject()


@flow("registering")
def registering(stage):
    stage.open_sign_in()
    stage.browser.click("p.aside a")
    stage.arrive("/auth/sign-up")
    stage.expect(200, "form")
    stage.look("register")
    name, password = stage.new_name("new"), "a long enough passphrase"
    stage.by_password(name, "short")
    stage.expect(400, "#password-error", "too short")
    assert stage.browser.run("return username.value") == name
    stage.look("register-short")
    stage.browser.type("#password", password)
    stage.browser.click("form button.primary")
    subject = stage.subject()
    stage.browser.clear()
    stage.open_sign_in()
    stage.by_password(name, password)
    assert stage.subject() == subject


@flow("registering a name that is taken")
def taken(stage):
    stage.go("/auth/sign-up?return_to=/me")
    stage.by_password(USER, "a long enough passphrase")
    stage.expect(409, "#username-error", "taken")
    stage.look("register-taken")
    assert not stage.cookie()


@flow("the sign-in page with a session leads on")
def already(stage):
    stage.open_sign_in()
    stage.by_password()
    subject = stage.subject()
    stage.go("/auth/sign-in?return_to=/me/again")
    assert stage.subject("/me/again") == subject
    # A change that needs a recent sign-in shows it nevertheless.
    stage.go("/auth/sign-in?confirm=true&return_to=/me")
    stage.expect(200, ".notice.note", "sign in again")
    stage.look("sign-in-confirm")
    old = stage.cookie()
    stage.by_password()
    assert stage.subject() == subject
    assert stage.cookie() != old and not stage.is_live(old), "the old cookie is alive"


@flow("without JavaScript")
def no_script(stage):
    stage.browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    stage.open_sign_in()
    stage.by_password()
    assert stage.subject()
    stage.go("/auth/account")
    stage.browser.click(".masthead form button")
    stage.arrive("/auth/signed-out")
    stage.browser.devtools("Storage.clearCookies")
    stage.open_sign_in()
    stage.by_apple(stage.new_name("plain"))
    # The simulated Apple's own page posts itself by a script, or has a button.
    stage.browser.click("noscript button")
    assert stage.subject()


@flow("another language, and the way stays the same")
def languages(stage):
    stage.open_sign_in()
    stage.browser.click("footer a[hreflang=zh-Hant]")
    wait(lambda: stage.browser.run("return document.documentElement.lang") == "zh-Hant", "the page in Chinese")
    stage.by_password(USER, "not the password")
    wait(lambda: stage.browser.has(".notice.error"), "the message")
    assert stage.browser.run("return document.documentElement.lang") == "zh-Hant", "the choice of the language is lost"
    stage.by_password()
    assert stage.subject()


@flow("return_to leads nowhere else")
def return_targets(stage):
    for target in ("//evil.example/", "https://evil.example/", "/\\evil.example", "/%2f/evil.example", "/auth/sign-out", "javascript:alert(1)"):
        stage.browser.clear()
        stage.go("/auth/sign-in?return_to=" + urllib.parse.quote(target, safe=""))
        stage.by_password()
        stage.arrive("/")


# Sessions


@flow("signing out, and the button for the page before")
def signing_out(stage):
    stage.open_sign_in("/auth/account")
    stage.by_password()
    stage.arrive("/auth/account")
    cookie = stage.cookie()
    stage.browser.click(".masthead form button")
    wait(lambda: not stage.cookie(), "the cookie to be deleted")
    wait(lambda: stage.path != "/auth/account", "another page")
    assert not stage.is_live(cookie), "the session is alive"
    before = len(stage.browser.responses())
    stage.browser.back()
    time.sleep(0.5)
    # Chromium may show the document that it still has in memory. The gateway serves nothing, and the document is dead.
    again = stage.browser.responses()[before:]
    assert all("/auth/account" not in one.url or one.status == 302 for one in again), [one.url for one in again]
    if stage.browser.has("section"):
        stage.browser.click("form[action*='/account/link/'] button, .masthead form button")
        wait(lambda: not stage.browser.has("section"), "another page")
    stage.go("/auth/account")
    stage.arrive("/auth/sign-in")


@flow("the page after signing out", once=True)
def signed_out(stage):
    stage.go("/auth/signed-out")
    stage.expect(200, "a.button.primary", "Sign in")
    stage.look("signed-out")


@flow("a session is replaced by another person's")
def replaced(stage):
    stage.open_sign_in()
    stage.by_password()
    first, cookie = stage.subject(), stage.cookie()
    stage.go("/auth/start/apple?return_to=/me")
    stage.on_apple(stage.new_name("other"))
    second = stage.subject()
    assert first != second
    assert not stage.is_live(cookie), "the first person's session is alive"

    def is_reported():
        events = [one for one in Client(stage.gateway).events() if one["type"].endswith("session.revoked")]
        return any("replaced" in json.dumps(one) for one in events)

    wait(is_reported, "the event session.revoked")


@flow("two tabs, started at once and both finished")
def two_tabs(stage):
    browser = stage.browser
    first = browser.tab
    stage.open_sign_in("/me/first")
    browser.click("a.button.apple")
    wait(lambda: browser.url.startswith(stage.gateway.apple), "Apple's page")
    second = browser.new_tab()
    stage.open_sign_in("/me/second")
    browser.click("a.button.wechat")
    wait(lambda: browser.url.startswith(stage.gateway.wechat), "WeChat's page")
    browser.switch(first)
    stage.on_apple(stage.new_name("tab"))
    one = stage.subject("/me/first")
    cookie = stage.cookie()
    browser.switch(second)
    stage.on_wechat(stage.new_name("tab"))
    assert stage.subject("/me/second") != one
    assert not stage.is_live(cookie), "the session of the first tab is alive"
    wait(lambda: not stage.attempts(), "the end of the attempts' cookies", 15)


@flow("two tabs with the same form")
def two_forms(stage):
    browser = stage.browser
    first = browser.tab
    stage.open_sign_in()
    second = browser.new_tab()
    stage.open_sign_in()
    stage.by_password()
    subject = stage.subject()
    browser.switch(first)
    stage.by_password()
    assert stage.subject() == subject
    browser.switch(second)
    stage.go("/me")
    assert stage.subject() == subject


@flow("cookies are blocked")
def blocked(stage):
    whole = stage.browser
    stage.browser = stage.driver.open(stage.language, blocks_cookies=True)
    try:
        stage.open_sign_in()
        stage.by_password()
        stage.expect(403, ".notice.error", "blocks cookies")
        stage.look("cookies-blocked")
        stage.go("/auth/sign-up")
        stage.by_password(stage.new_name("blocked"), "a long enough passphrase")
        stage.expect(403, ".notice.error", "blocks cookies")
        stage.look("register-cookies-blocked")
        stage.go("/auth/sign-in")
        stage.by_apple(stage.new_name("blocked"))
        stage.arrive("/auth/callback/apple")
        stage.expect(400, ".notice.error")
        stage.look("callback-cookies-blocked")
    finally:
        stage.browser.quit()
        stage.browser = whole


@flow("a callback that is loaded again")
def reloaded(stage):
    stage.open_sign_in()
    stage.by_wechat(stage.new_name("again"))
    subject, cookie = stage.subject(), stage.cookie()
    callback = next(one.url for one in stage.browser.responses() if "/auth/callback/wechat" in one.url)
    stage.browser.go(callback)
    wait(lambda: not stage.path.startswith("/auth/"), f"a page of the site, at {stage.browser.url}")
    assert stage.cookie() == cookie and stage.is_live(cookie), "the session has changed"
    stage.go("/me")
    assert stage.subject() == subject
    # A form, which the browser sends again.
    stage.go("/auth/start/apple?return_to=/me")
    stage.on_apple("", "cancel")
    stage.expect(200, ".notice.note")
    stage.browser.reload()
    if stage.gateway.secure:
        stage.expect(400, ".notice.error")
    else:
        # Over http the other site is the same one, so the session's cookie comes with the form, and the browser goes on.
        wait(lambda: not stage.path.startswith("/auth/"), f"a page of the site, at {stage.browser.url}")
    assert stage.is_live(cookie)


@flow("a session cookie from before the sign-in is not kept")
def fixation(stage):
    attacker = Client(stage.gateway)
    form = attacker.send("/auth/sign-in")[2].split('name="csrf" value="')[1].split('"')[0]
    fields = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    assert attacker.send("/auth/sign-in", {"username": USER, "password": PASSWORD, "csrf": form}, fields)[0] == 303
    planted = next(one.value for one in attacker.jar if one.name == stage.gateway.prefix)
    stage.go("/auth/signed-out")
    stage.browser.devtools(
        "Network.setCookie", name=stage.gateway.prefix, value=planted, url=stage.gateway.origin + "/", secure=stage.gateway.secure,
        httpOnly=True, path="/")
    stage.go("/auth/start/apple?return_to=/me")
    stage.on_apple(stage.new_name("victim"))
    assert stage.subject()
    assert stage.cookie() != planted and not stage.is_live(planted), "the planted session is alive"


@flow("a cookie that is no session leads to the sign-in page, and is deleted")
def stale_cookie(stage):
    stage.go("/auth/signed-out")
    value = "mct_" + "A" * 43
    stage.browser.devtools(
        "Network.setCookie", name=stage.gateway.prefix, value=value, url=stage.gateway.origin + "/", secure=stage.gateway.secure,
        httpOnly=True, path="/")
    stage.open_sign_in()
    assert not stage.cookie(), "the cookie is still there"


@flow("other cookies reach the upstream untouched")
def other_cookies(stage):
    stage.open_sign_in()
    stage.by_password()
    stage.subject()
    for name, value in (("theme", "dark"), ("a-" + stage.gateway.prefix.strip("_"), "kept")):
        stage.browser.devtools(
            "Network.setCookie", name=name, value=value, url=stage.gateway.origin + "/", secure=stage.gateway.secure, path="/")
    stage.go("/me/cookies")
    wait(lambda: "theme=dark" in stage.text, "the other cookies")
    cookie = json.loads(stage.text)["headers"]["cookie"]
    kept = sorted(cookie.split("; "))
    assert kept == sorted(["theme=dark", f"a-{stage.gateway.prefix.strip('_')}=kept"]), cookie


# The account's page


@flow("the account's page: connecting, disconnecting, ending another session")
def account(stage):
    name, person = stage.new_name("account"), stage.new_name("person")
    stage.open_sign_in("/auth/account")
    stage.by_apple(name)
    stage.arrive("/auth/account")
    stage.look("account")
    before = stage.cookie()
    stage.browser.click("form[action*='/account/link/wechat'] button")
    stage.on_wechat(person)
    stage.arrive("/auth/account")
    stage.expect(200, ".notice.success", "connected")
    stage.look("account-connected")
    # The old one is accepted for the requests that are on their way, and gets no replacement.
    assert stage.cookie() != before, "the cookie is not issued anew"
    stage.go("/me")
    subject = stage.subject()
    # WeChat now signs in to the same account: on another device.
    own = stage.browser.cookies()
    stage.browser.devtools("Storage.clearCookies")
    stage.open_sign_in()
    stage.by_wechat(person)
    assert stage.subject() == subject
    other = stage.cookie()
    stage.browser.devtools("Storage.clearCookies")
    stage.browser.devtools("Storage.setCookies", cookies=own)
    stage.go("/auth/account")
    stage.look("account-devices")
    stage.browser.click("form[action*='/account/sessions/'] button")
    stage.expect(200, ".notice.success", "signed out")
    assert not stage.is_live(other), "the other session is alive"
    stage.browser.click("form[action*='/account/unlink/wechat'] button")
    wait(lambda: stage.browser.has("form[action*='/account/link/wechat']"), "WeChat to be disconnected")
    stage.expect(200, ".notice.success", "disconnected")
    stage.look("account-disconnected")
    # The only one that is left has no button.
    assert not stage.browser.has("form[action*='/account/unlink/']")
    stage.go("/me")
    assert stage.subject() == subject


@flow("connecting: cancelled, and an identity of another account")
def linking_fails(stage):
    taken_person = stage.new_name("taken")
    stage.open_sign_in()
    stage.by_wechat(taken_person)
    stage.subject()
    stage.browser.devtools("Storage.clearCookies")
    stage.open_sign_in("/auth/account")
    stage.by_apple(stage.new_name("linking"))
    stage.arrive("/auth/account")
    stage.browser.click("form[action*='/account/link/wechat'] button")
    stage.on_wechat("", "cancel")
    stage.expect(200, ".notice.note", "not connected")
    stage.look("account-link-cancelled")
    stage.browser.click("form[action*='/account/link/wechat'] button")
    stage.on_wechat(taken_person)
    wait(lambda: stage.browser.has(".notice.error"), "the message")
    stage.expect(200, ".notice.error", "belongs to another account")
    stage.look("account-identity-taken")


@flow("connecting Apple, whose form comes from another site")
def linking_apple(stage):
    stage.open_sign_in("/auth/account")
    stage.by_wechat(stage.new_name("links"))
    stage.arrive("/auth/account")
    before = stage.cookie()
    stage.browser.click("form[action*='/account/link/apple'] button")
    stage.on_apple(stage.new_name("linked"))
    stage.expect(200, ".notice.success", "connected")
    assert stage.cookie() and stage.is_live(stage.cookie())
    # Over https the form of another site comes without the session's cookie, which then stays.
    assert stage.gateway.secure or stage.cookie() != before, "the cookie is not issued anew"


@flow("changing the password")
def password(stage):
    name, old, new = stage.new_name("changes"), "a long enough passphrase", "another long passphrase"
    stage.register(name, old)
    phone = Client(stage.gateway)
    assert phone.send("/auth/login/password", {"username": name, "password": old})[0] == 200
    stage.go("/auth/account")
    before = stage.cookie()

    def change(current, chosen):
        stage.browser.type("#current-password", current)
        stage.browser.type("#new-password", chosen)
        stage.browser.click("form[action*='/account/password'] button")

    change("not the password", new)
    stage.expect(401, "#current-password-error", "not correct")
    stage.look("account-wrong-password")
    change(old, "short")
    wait(lambda: stage.browser.has("#new-password-error"), "the message")
    stage.expect(400, "#new-password-error", "too short")
    stage.look("account-short-password")
    change(old, new)
    stage.expect(200, ".notice.success", "changed")
    stage.look("account-password-changed")
    assert stage.cookie() != before, "the cookie is not issued anew"
    stage.browser.clear()
    stage.open_sign_in()
    stage.by_password(name, old)
    stage.expect(401, ".notice.error")
    stage.by_password(name, new)
    assert stage.subject()


@flow("deleting the account")
def deletion(stage):
    stage.open_sign_in("/auth/account")
    stage.by_apple(stage.new_name("leaves"))
    stage.arrive("/auth/account")
    cookie = stage.cookie()
    # Browsers stop the form without its confirmation; so does the gateway.
    stage.browser.run("document.querySelector('#confirm').required = false")
    stage.browser.click("form[action*='/account/delete'] button")
    wait(lambda: stage.browser.has("#confirm-error"), "the message")
    stage.expect(400, "#confirm-error", "select the box")
    stage.look("account-not-confirmed")
    assert stage.is_live(cookie)
    stage.browser.click("#confirm")
    stage.browser.click("form[action*='/account/delete'] button")
    stage.arrive("/auth/sign-in")
    stage.expect(200, ".notice.success", "deleted")
    stage.look("account-deleted")
    assert not stage.cookie() and not stage.is_live(cookie)


@flow("signing out on all devices")
def everywhere(stage):
    name = stage.new_name("everywhere")
    stage.register(name)
    first = stage.cookie()
    stage.browser.devtools("Storage.clearCookies")
    stage.open_sign_in("/auth/account")
    stage.by_password(name, "a long enough passphrase")
    stage.arrive("/auth/account")
    second = stage.cookie()
    stage.browser.click("form[action*='/auth/sign-out'] input[name=all] ~ button")
    wait(lambda: not stage.cookie(), "the cookie to be deleted")
    assert not stage.is_live(first) and not stage.is_live(second)


# Apps


def challenge(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def native_code(stage, verifier, name, action="continue"):
    """The URL that the app is opened with, at the end of a sign-in with Apple."""
    query = urllib.parse.urlencode({
        "client": "native", "redirect": NATIVE, "code_challenge": challenge(verifier), "code_challenge_method": "S256", "state": "xyz"})
    stage.go("/auth/start/apple?" + query)
    stage.on_apple(name, action)

    def location():
        return next((
            one.fields["location"] for one in reversed(stage.browser.responses())
            if "/auth/callback/apple" in one.url and one.fields.get("location", "").startswith(NATIVE)), None)

    found = wait(location, "the app's URL")
    return urllib.parse.parse_qs(urllib.parse.urlsplit(found).query)


def exchange(stage, code, verifier):
    status, _, text = Client(stage.gateway).send("/auth/token", {"code": code, "code_verifier": verifier})
    return status, json.loads(text)


@flow("an app signs in: its code becomes tokens, once")
def native(stage):
    verifier = secrets.token_urlsafe(32)
    query = native_code(stage, verifier, stage.new_name("app"))
    assert query["state"] == ["xyz"] and not stage.cookie(), query
    status, tokens = exchange(stage, query["code"][0], verifier)
    assert status == 200 and tokens["access_token"].startswith("mat_") and tokens["refresh_token"], tokens
    status, _, text = Client(stage.gateway).send("/me", fields={"Authorization": f"Bearer {tokens['access_token']}"})
    assert status == 200 and json.loads(text)["headers"]["x-auth-subject"], text
    assert exchange(stage, query["code"][0], verifier)[0] == 401, "the code is valid twice"


@flow("an app's code with another verifier is used up")
def native_verifier(stage):
    verifier = secrets.token_urlsafe(32)
    code = native_code(stage, verifier, stage.new_name("app"))["code"][0]
    assert exchange(stage, code, secrets.token_urlsafe(32))[0] == 401
    assert exchange(stage, code, verifier)[0] == 401


@flow("an app learns that its user cancelled")
def native_cancelled(stage):
    query = native_code(stage, secrets.token_urlsafe(32), "", "cancel")
    assert query["error"] == ["access_denied"] and query["state"] == ["xyz"], query


@flow("an app's code is valid for a minute", once=True)
def native_late(stage):
    verifier = secrets.token_urlsafe(32)
    code = native_code(stage, verifier, stage.new_name("late"))["code"][0]

    def check():
        assert exchange(stage, code, verifier)[0] == 401

    # Other flows are played in the meantime.
    stage.later(61, check)


@flow("what apps may not ask for")
def native_errors(stage):
    good = {"client": "native", "redirect": NATIVE, "code_challenge": challenge("x" * 43)}
    for change in ({"redirect": "com.example.app:/other"}, {"redirect": "https://evil.example/"}, {"code_challenge_method": "plain"},
                   {"code_challenge": ""}, {"client": "web"}):
        stage.go("/auth/start/apple?" + urllib.parse.urlencode({**good, **change}))
        stage.expect(400, "main")
    stage.look("error-invalid")


# Errors


@flow("a form of another site")
def cross_site(stage):
    stage.open_sign_in()
    stage.by_password()
    stage.subject()
    cookie = stage.cookie()
    stage.browser.go(stage.gateway.apple + "/simulator/requests")
    stage.post("/auth/sign-out", {})
    wait(lambda: stage.browser.has("h1"), "the page")
    stage.expect(403, "main", "another website")
    stage.look("error-cross-site")
    assert stage.cookie() == cookie and stage.is_live(cookie), "another site signs users out"
    stage.browser.go(stage.gateway.apple + "/simulator/requests")
    stage.post("/auth/account/delete", {"confirm": "true"})
    wait(lambda: stage.browser.has("h1"), "the page")
    assert stage.status in (401, 403), stage.status
    assert stage.is_live(cookie)


@flow("a callback that is made up")
def forged(stage):
    for visit in (
        lambda: stage.go("/auth/callback/wechat?code=made-up&state=" + "0" * 64),
        lambda: stage.go("/auth/callback/wechat"),
        lambda: (stage.go("/auth/signed-out"), stage.post("/auth/callback/apple", {"code": "made-up", "id_token": "e30.e30.e30", "state": "0" * 64})),
    ):
        visit()
        wait(lambda: stage.path.startswith("/auth/callback/"), "the callback")
        stage.expect(400, ".notice.error", "could not sign you in")
        assert not stage.cookie()
    stage.look("callback-forged")


@flow("a callback of another provider, and of another browser")
def mixed(stage):
    stage.open_sign_in()
    stage.browser.click("a.button.wechat")
    wait(lambda: stage.browser.url.startswith(stage.gateway.wechat), "WeChat's page")
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(stage.browser.url).query)["state"][0]
    stage.go("/auth/signed-out")
    stage.post("/auth/callback/apple", {"code": "made-up", "id_token": "e30.e30.e30", "state": state})
    stage.arrive("/auth/callback/apple")
    stage.expect(400, ".notice.error")
    stage.browser.devtools("Storage.clearCookies")
    stage.go(f"/auth/callback/wechat?code=made-up&state={state}")
    stage.expect(400, ".notice.error")
    assert not stage.cookie()


@flow("a form without its token")
def no_token(stage):
    stage.go("/auth/sign-in?return_to=/me")
    stage.browser.run("document.querySelector('input[name=csrf]').remove()")
    stage.by_password()
    stage.expect(403, ".notice.error", "expired")
    stage.look("form-expired")
    # The page has a fresh form.
    stage.by_password()
    assert stage.subject()
    stage.go("/auth/account")
    stage.browser.run("for (const one of document.querySelectorAll('input[name=csrf]')) one.value = 'made-up'")
    stage.browser.click("form[action*='/account/link/wechat'] button")
    stage.expect(403, ".notice.error", "expired")
    stage.look("account-form-expired")


@flow("an unknown provider, an unknown page, a method that is not allowed")
def unknown(stage):
    stage.go("/auth/start/nothing")
    stage.expect(404, "h1", "does not exist")
    stage.look("error-not-found")
    stage.go("/auth/callback/nothing")
    stage.expect(404, "h1")
    stage.go("/auth/sign-out")
    wait(lambda: stage.status == 405, "405")


@flow("a cookie that cannot be used is deleted, and keeps no one out")
def bad_cookies(stage):
    for path in ("/auth/sign-in", "/me", "/public/x"):
        stage.go("/auth/signed-out")
        stage.browser.devtools(
            "Network.setCookie", name=stage.gateway.prefix, value="A" * 3950, url=stage.gateway.origin + "/", secure=stage.gateway.secure,
            httpOnly=True, path="/")
        stage.go(path)
        wait(lambda: stage.status == 200, f"{path} in spite of the cookie")
        assert not stage.cookie(), "the cookie is still there"


# Pages of the site


def fetch(stage, path):
    """The status that a page's script gets, and whether there was a challenge for a dialog."""
    stage.browser.run("window.got = null; fetch(arguments[0]).then(one => { window.got = [one.status, one.headers.get('www-authenticate')] })", path)
    return wait(lambda: stage.browser.run("return window.got"), f"the response to a fetch of {path}")


@flow("a page's fetch without a session gets its 401, and no dialog", once=True)
def fetch_without_session(stage):
    with Configured(stage.binary) as site:
        stage.browser.go(site.origin + "/public/x")
        status, challenge = fetch(stage, "/api/x")
        assert status == 401 and "Basic" not in (challenge or ""), (status, challenge)
        # A program that knows nothing else still gets the challenge.
        try:
            urllib.request.urlopen(site.origin + "/api/x", timeout=10)
        except urllib.error.HTTPError as error:
            assert error.code == 401 and any(one.startswith("Basic") for one in error.headers.get_all("WWW-Authenticate")), error.headers
        stage.browser.go(site.origin + "/away")
        wait(lambda: "/auth/sign-in" in stage.browser.url, "the sign-in page")
        stage.by_password()
        wait(lambda: stage.browser.url == site.elsewhere + "/public/other", f"the page elsewhere, at {stage.browser.url}")
        stage.browser.go(site.origin + "/public/x")
        assert fetch(stage, "/api/x")[0] == 200


@flow("a form whose page redirects to another site", once=True)
def form_elsewhere(stage):
    with Configured(stage.binary) as site:
        stage.browser.go(site.origin + "/away")
        stage.browser.find("#username")
        stage.by_password(USER, "not the password")
        stage.expect(401, ".notice.error")
        stage.browser.type("#password", PASSWORD)
        stage.browser.click("form button.primary")
        wait(lambda: stage.browser.url == site.elsewhere + "/public/other", f"the page elsewhere, at {stage.browser.url}")


@flow("a page that one may not see says who one is, and lets one leave", once=True)
def denied(stage):
    with Configured(stage.binary) as site:
        stage.browser.go(site.origin + "/staff/x")
        stage.browser.find("#username")
        stage.by_password()
        stage.expect(403, "form", "Sign out")
        stage.look("denied")
        other = stage.browser.run("return document.querySelector('a.button').getAttribute('href')")
        assert other == "/auth/sign-in?confirm=true&return_to=/staff/x", other
        stage.browser.click("form button")
        wait(lambda: stage.browser.url == site.origin + "/auth/signed-out", f"the page after, at {stage.browser.url}")
        stage.browser.go(site.origin + "/staff/x")
        wait(lambda: "/auth/sign-in" in stage.browser.url, "the sign-in page")
        for path, status in (("/nothing", 404), ("/gone/x", 502)):
            stage.browser.go(site.origin + path)
            stage.expect(status, "h1")
            stage.look(f"error-{status}")


@flow("ten tabs that are restored at the same time")
def restored_tabs(stage):
    stage.go("/public/x")
    tabs = [stage.browser.new_tab() for _ in range(10)]
    starts = [f"/auth/start/wechat?return_to=/me/tab{number}%3Fq%3D{'a' * 300}" for number in range(10)]
    # All begin before the first has a response.
    stage.browser.switch(tabs[0])
    stage.go("/public/x")
    stage.browser.run(
        "for (const one of arguments[0]) window.open(one, '_blank')", [stage.gateway.origin + one for one in starts])
    wait(lambda: len([one for one in stage.browser.call("GET", "/window/handles") if one not in tabs]) >= 11, "ten tabs")
    opened = [one for one in stage.browser.call("GET", "/window/handles") if one not in tabs]
    name, arrived = stage.new_name("tabs"), []
    forgotten = 0
    for handle in opened:
        stage.browser.switch(handle)
        if not stage.browser.url.startswith(stage.gateway.wechat):
            continue
        stage.on_wechat(name)
        wait(lambda: stage.browser.url.startswith(stage.gateway.origin), "the way back")
        if stage.path.startswith("/auth/"):
            # One of those beyond five, in a browser that has no session yet.
            assert not arrived, stage.browser.url
            forgotten += 1
            continue
        arrived.append(stage.path.partition("?")[0])
    # Five have their page; the others find a browser that has signed in meanwhile, and not where they came from.
    assert len(arrived) + forgotten == 10 and forgotten <= 5, (arrived, forgotten)
    assert len({one for one in arrived if one.startswith("/me/tab")}) == 5, arrived
    assert set(arrived) - {f"/me/tab{number}" for number in range(10)} <= {"/"}, arrived


@flow("two sign-ins to long addresses")
def long_targets(stage):
    targets = [f"/me/{name}?q={'a' * 1500}" for name in ("one", "two")]
    tabs = []
    for target in targets:
        tabs.append(stage.browser.new_tab())
        stage.open_sign_in(target)
        stage.browser.click("a.button.wechat")
        wait(lambda: stage.browser.url.startswith(stage.gateway.wechat), "WeChat's page")
    name = stage.new_name("long")
    for tab, target in zip(tabs, targets):
        stage.browser.switch(tab)
        stage.on_wechat(name)
        assert stage.subject(target)


@flow("the same way back twice")
def callback_twice(stage):
    stage.open_sign_in("/me/twice")
    stage.by_wechat(stage.new_name("twice"))
    first = stage.subject("/me/twice")
    callback = next(one.url for one in stage.browser.responses() if "/auth/callback/wechat" in one.url)
    cookie = stage.cookie()
    stage.browser.go(callback)
    assert stage.subject("/me/twice") == first and stage.cookie() == cookie, "another session"
