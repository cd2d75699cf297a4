"""One pass over all flows: a gateway, a browser, a language, and what is checked on every page."""

import json
import time
import urllib.parse

import accessibility
import gateway as gateways
from webdriver import wait

IN_WECHAT = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 "
    "MicroMessenger/8.0.50 NetType/WIFI Language/zh_CN"
)
PAGE_FIELDS = {
    "cache-control": "no-store", "referrer-policy": "same-origin", "x-content-type-options": "nosniff",
    "content-type": "text/html; charset=utf-8",
}


class Stage:
    """What flows use; `says` and `look` differ between the passes."""

    def __init__(self, gateway, browser, language, folder, driver):
        self.gateway, self.browser, self.language, self.folder, self.driver = gateway, browser, language, folder, driver
        self.seen, self.cookies, self.names = set(), {}, 0
        self.due, self.check = 0.0, None
        self.binary = gateway.binary

    # Pages

    def go(self, path):
        self.browser.go(path if "://" in path else self.gateway.origin + path)

    @property
    def path(self):
        parts = urllib.parse.urlsplit(self.browser.url)
        own = f"{parts.scheme}://{parts.netloc}" == self.gateway.origin
        return (parts.path + ("?" + parts.query if parts.query else "")) if own else self.browser.url

    def arrive(self, path):
        """Waits until the browser is at a path of the gateway, whatever its query unless one is given."""
        wait(lambda: (self.path if "?" in path else self.path.partition("?")[0]) == path, f"{path}, at {self.browser.url}")

    @property
    def status(self):
        return self.browser.run("return performance.getEntriesByType('navigation')[0].responseStatus")

    @property
    def text(self):
        return self.browser.run("return document.body.innerText")

    def expect(self, status, selector, says=""):
        """Waits for a page with that status and element; `says` is a part of its text in English."""
        wait(lambda: self.browser.has(selector), f"{selector} at {self.browser.url}: {self.text[:300]}")
        assert self.status == status, f"status {self.status}, not {status}, at {self.browser.url}"
        if says and self.language == "en":
            element = self.browser.run("return document.querySelector(arguments[0]).innerText", selector)
            assert says in element, f"“{says}” is not in “{element}”"
        if status >= 400 and self.browser.has(".notice"):
            assert self.browser.has(".notice.error[role=alert]"), "the message is no alert"

    def look(self, name):
        """Checks the page by all rules, in every view, and takes pictures: once for each name."""
        if name in self.seen:
            return
        self.seen.add(name)
        browser, wrong = self.browser, []
        shown = browser.run("return document.documentElement.lang")
        assert shown == self.language, f"{name}: in {shown}"
        views = {"light": {}, "dark": {"dark": True}, "320": {"width": 320}}
        if self.language != "en":
            views = {self.language: {}, f"{self.language}.320": {"width": 320}}
        for view, setting in views.items():
            scheme = "dark" if setting.get("dark") else "light"
            browser.devtools("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])
            if "width" in setting:
                browser.devtools("Emulation.setDeviceMetricsOverride", width=setting["width"], height=800, deviceScaleFactor=1, mobile=False)
            wrong += [f"{view}: {one}" for one in accessibility.rules(browser)]
            (self.folder / f"{name}.{view}.png").write_bytes(browser.picture())
            if "width" in setting:
                browser.devtools("Emulation.clearDeviceMetricsOverride")
        browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        if self.language == "en":
            wrong += accessibility.focus(browser)
        assert not wrong, f"{name}: " + "; ".join(wrong)

    # Signing in

    def new_name(self, start):
        """A user that no other flow has."""
        self.names += 1
        return f"{start}-{self.language.lower()}-{self.names}"

    def open_sign_in(self, target="/me"):
        """The way of a person: to a page that needs a session."""
        self.go(target)
        self.arrive("/auth/sign-in")

    def by_apple(self, account, action="continue"):
        """From the sign-in page through the simulated Apple's."""
        self.browser.click("a.button.apple")
        self.on_apple(account, action)

    def on_apple(self, account, action="continue"):
        wait(lambda: self.browser.url.startswith(self.gateway.apple), "Apple's page")
        if action == "continue":
            self.browser.type("input[name=page_account]", account)
        self.browser.click(f"button[value={action}]")

    def by_wechat(self, person, action="confirm"):
        self.browser.click("a.button.wechat")
        self.on_wechat(person, action)

    def on_wechat(self, person, action="confirm"):
        wait(lambda: self.browser.url.startswith(self.gateway.wechat), "WeChat's page")
        if action == "confirm":
            self.browser.type("input[name=page_person]", person)
        self.browser.click(f"button[value={action}]")

    def by_password(self, name=gateways.USER, password=gateways.PASSWORD):
        self.browser.type("#username", name)
        self.browser.type("#password", password)
        self.browser.click("form button.primary")

    def register(self, name, password="a long enough passphrase"):
        """A new account, signed in."""
        self.go("/auth/sign-up?return_to=/me")
        self.by_password(name, password)
        return self.subject()

    def pretend_wechat(self):
        """From now on this tab is WeChat's own browser."""
        self.browser.devtools("Emulation.setUserAgentOverride", userAgent=IN_WECHAT, acceptLanguage=self.language)

    # What came out of it

    def subject(self, path="/me"):
        """Who the upstream believes that this is; also that it sees none of the gateway's cookies."""
        self.arrive(path)
        document = json.loads(wait(lambda: self.text, "the upstream's response"))
        headers = document["headers"]
        assert self.gateway.prefix not in str(headers.get("cookie", "")), "the upstream gets a cookie of the gateway"
        return headers.get("x-auth-subject")

    def cookie(self, suffix=""):
        """The value of one of the gateway's cookies; None without it."""
        name = self.gateway.prefix + suffix
        return next((one["value"] for one in self.browser.cookies() if one["name"] == name), None)

    def attempts(self):
        """The names of the cookies of sign-ins that wait for a provider."""
        return [one["name"] for one in self.browser.cookies() if one["name"].startswith(self.gateway.prefix + "-start")]

    def is_live(self, cookie):
        """Whether a session cookie still authenticates."""
        status = gateways.Client(self.gateway).with_cookie("/me", cookie)
        assert status in (200, 401), f"status {status}"
        return status == 200

    def post(self, path, fields):
        """Sends a form from the page that is shown, as a script on it could."""
        self.browser.run(
            "const form = document.createElement('form'); form.method = 'post'; form.action = arguments[0];"
            "for (const [name, value] of Object.entries(arguments[1])) { const input = document.createElement('input');"
            "input.type = 'hidden'; input.name = name; input.value = value; form.append(input); }"
            "document.body.append(form); form.submit();", path if "://" in path else self.gateway.origin + path, fields)

    def later(self, seconds, check):
        """A part of this flow that is played when that time is over."""
        self.due, self.check = time.monotonic() + seconds, check

    def finish(self):
        """What has to be true of every response and message of a flow."""
        wrong = []
        for response in self.browser.responses():
            path = response.url.removeprefix(self.gateway.origin)
            if path == response.url or not path.startswith("/auth/"):
                continue
            wrong += self._faults(response, path.partition("?")[0])
            for line in response.set_cookies:
                self._remember(line)
        wrong += [one for one in self.browser.messages if "Content Security Policy" in one or "Cookie" in one]
        assert not wrong, "; ".join(wrong)

    def _faults(self, response, path):
        wrong = []
        if response.fields.get("cache-control") != "no-store" and not path.startswith("/auth/logo/"):
            wrong.append(f"{path} may be stored")
        if response.status not in (302, 303) and "html" in response.fields.get("content-type", ""):
            wrong += [f"{path}: {name} is not {value}" for name, value in PAGE_FIELDS.items() if response.fields.get(name) != value]
            policy = response.fields.get("content-security-policy", "")
            if not policy.startswith("default-src 'none'; style-src 'nonce-") or "unsafe" in policy:
                wrong.append(f"{path}: policy {policy}")
        for line in response.set_cookies:
            attributes = [one.strip().lower() for one in line.split(";")[1:]]
            if "httponly" not in attributes or "path=/" not in attributes or ("secure" in attributes) != self.gateway.secure:
                wrong.append(f"{path}: cookie {line}")
            if any(one.startswith("domain") for one in attributes):
                wrong.append(f"{path}: cookie with a domain")
        return wrong

    def _remember(self, line):
        pair, _, attributes = line.partition(";")
        name, _, value = pair.partition("=")
        # Values differ; how the cookie is set does not.
        key = (name, attributes.strip())
        low, high = self.cookies.get(key, (len(value), len(value)))
        self.cookies[key] = (min(low, len(value)), max(high, len(value)))
