"""A small client of chromedriver: the W3C's WebDriver protocol, and the DevTools commands that chromedriver passes on."""

import base64
import http.client
import json
import re
import select
import subprocess
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
WAIT = 15


class DriverError(Exception):
    """What chromedriver says; `kind` is the protocol's name of the error."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Driver:
    """A chromedriver process on a free port."""

    def __init__(self, executable, browser):
        self.browser = browser
        self.process = subprocess.Popen([executable, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = self._port()

    def _port(self):
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and select.select([self.process.stdout], [], [], 1)[0] is not None:
            found = re.search(r"started successfully on port (\d+)", self.process.stdout.readline())
            if found:
                return int(found.group(1))
        raise DriverError("start", "chromedriver does not start")

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise DriverError(value["error"], value.get("message", "").split("\n")[0])
        return value

    def open(self, languages="en", blocks_cookies=False):
        """A browser with a profile of its own."""
        # Cookies: 1 allows, 2 blocks.
        preferences = {"intl.accept_languages": languages, "profile.default_content_setting_values.cookies": 2 if blocks_cookies else 1}
        # The command line of browsers is readable by everyone on the machine; nothing secret is in it.
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1000,900",
            f"--accept-lang={languages}", "--force-device-scale-factor=1",
        ]
        capabilities = {
            "browserName": "chrome", "acceptInsecureCerts": True, "unhandledPromptBehavior": "accept",
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            "goog:chromeOptions": {"binary": self.browser, "args": arguments, "prefs": preferences},
        }
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        return Browser(self, made["sessionId"])

    def stop(self):
        self.process.terminate()
        self.process.wait(WAIT)


class Browser:
    """One Chromium, with the tab that commands go to."""

    def __init__(self, driver, session):
        self.driver, self.session = driver, session
        self.events, self.messages = [], []

    def call(self, method, path, body=None):
        return self.driver.call(method, f"/session/{self.session}{path}", body)

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script, *arguments):
        """The value that a function body returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def go(self, url):
        self.call("POST", "/url", {"url": url})

    @property
    def url(self):
        return self.call("GET", "/url")

    def back(self):
        self.call("POST", "/back", {})

    def reload(self):
        self.call("POST", "/refresh", {})

    def new_tab(self):
        """A tab, which becomes the current one."""
        handle = self.call("POST", "/window/new", {"type": "tab"})["handle"]
        self.switch(handle)
        return handle

    @property
    def tab(self):
        return self.call("GET", "/window")

    def switch(self, handle):
        self.call("POST", "/window", {"handle": handle})

    def close_other_tabs(self):
        """Leaves one new tab."""
        old = self.call("GET", "/window/handles")
        new = self.new_tab()
        for handle in old:
            self.switch(handle)
            self.call("DELETE", "/window")
        self.switch(new)

    def find(self, selector):
        """An element, as soon as it is there."""
        return wait(lambda: self.find_all(selector), f"an element {selector}")[0]

    def find_all(self, selector):
        return [one[ELEMENT] for one in self.call("POST", "/elements", {"using": "css selector", "value": selector})]

    def has(self, selector):
        return bool(self.find_all(selector))

    def click(self, selector):
        """Clicks an element; one whose page is being left is looked for on the next."""
        deadline = time.monotonic() + WAIT
        while True:
            try:
                return self.call("POST", f"/element/{self.find(selector)}/click", {})
            except DriverError as error:
                # Nothing was clicked: chromedriver looks for the element in the document first.
                is_gone = error.kind == "stale element reference" or "does not belong to the document" in str(error)
                if not is_gone or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def type(self, selector, text):
        element = self.find(selector)
        self.call("POST", f"/element/{element}/clear", {})
        self.call("POST", f"/element/{element}/value", {"text": text})

    def press(self, key, code):
        """A key, such as Tab, where the focus is."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.devtools("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra)

    def picture(self):
        """The whole page as PNG."""
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": max(size["height"], 200), "scale": 1}
        return base64.b64decode(self.devtools("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"])

    def cookies(self):
        """All cookies, of every site."""
        return self.devtools("Storage.getCookies")["cookies"]

    def clear(self):
        """As after the start: one tab without settings, no cookies."""
        self.close_other_tabs()
        self.devtools("Storage.clearCookies")
        self.collect()
        self.events.clear()
        self.messages.clear()

    def collect(self):
        """Reads what the browser has logged since."""
        for entry in self.call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.responseReceivedExtraInfo", "Network.requestWillBeSent"):
                self.events.append((message["method"].partition(".")[2], message["params"]))
        self.messages += [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def responses(self):
        """The responses so far: of each request and redirect, in order, the URL, the status and the fields."""
        self.collect()
        urls, found = {}, []
        for name, event in self.events:
            if name == "requestWillBeSent":
                urls.setdefault(event["requestId"], []).append((event["request"]["method"], event["request"]["url"]))
        for name, event in self.events:
            if name == "responseReceivedExtraInfo" and urls.get(event["requestId"]):
                method, url = urls[event["requestId"]].pop(0)
                fields = {key.lower(): value for key, value in event["headers"].items()}
                found.append(Response(method, url, event["statusCode"], fields, event["blockedCookies"]))
        return found

    def quit(self):
        self.call("DELETE", "")


class Response:
    """A response that the browser got, redirects included."""

    def __init__(self, method, url, status, fields, blocked_cookies):
        self.method, self.url, self.status, self.fields, self.blocked_cookies = method, url, status, fields, blocked_cookies

    @property
    def set_cookies(self):
        return self.fields.get("set-cookie", "").split("\n") if "set-cookie" in self.fields else []


def wait(condition, what, seconds=WAIT):
    """The first value of a condition that is true."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = condition()
        except DriverError as error:
            # Between two pages there is no document.
            if error.kind not in ("stale element reference", "no such element", "javascript error", "unknown error"):
                raise
            value = None
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
