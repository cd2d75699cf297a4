"""The demo: a gateway with simulated providers, and a client that is no browser."""

import http.client
import http.cookiejar
import json
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER, PASSWORD = "ada", "correct horse battery staple"


class Gateway:
    """`martlet demo` on a free port."""

    def __init__(self, binary, secure):
        command = [str(binary), "demo", "--listen", "127.0.0.1:0", *(["--tls"] if secure else [])]
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, text=True)
        self.secure, self.binary = secure, binary
        printed = self._printed()
        self.origin = re.search(r"^Open (https?://[^/]+)/me ", printed).group(1)
        self.apple = re.search(r"Apple +(http://[^/]+)/", printed).group(1)
        self.wechat = re.search(r"WeChat +(http://[^/]+)/", printed).group(1)
        self.events = re.search(r"events +(http://\S+)", printed).group(1)
        self.prefix = "__Host-martlet" if secure else "martlet"

    def _printed(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            self.output.seek(0)
            text = self.output.read()
            if text.endswith("\n") and "curl " in text:
                return text
            time.sleep(0.05)
        self.output.seek(0)
        raise AssertionError(f"the demo does not start:\n{self.output.read()}")

    def stop(self):
        self.process.terminate()
        if self.process.wait(20) != 0:
            raise AssertionError(f"the demo ended with {self.process.returncode}")


ELSEWHERE = """
version: 1
server: {{ listen: [{{ address: 127.0.0.1:{port} }}] }}
accounts: {{ url: "sqlite:a.db" }}
sessions: {{}}
browser: {{ origin: "http://127.0.0.1:{port}" }}
providers:
  pw: {{ kind: password, users: accounts }}
upstreams: {{ echo: {{ endpoints: ["builtin:echo"] }}, gone: {{ endpoints: ["http://127.0.0.1:1"] }} }}
routes:
  - {{ name: public, match: {{ path: /public/** }}, auth: none, upstream: echo }}
  - {{ name: gone, match: {{ path: /gone/** }}, auth: none, upstream: gone }}
  - name: away
    match: {{ path: /away }}
    auth: {{ providers: [pw], credentials: [session] }}
    redirect: {{ to: "http://localhost:{port}/public/other", status: 302 }}
  - name: staff
    match: {{ path: /staff/** }}
    auth: {{ providers: [pw], credentials: [session] }}
    authorize: [{{ claim: staff, equals: true }}]
    upstream: echo
  - {{ name: api, match: {{ path: /api/** }}, auth: {{ providers: [pw] }}, upstream: echo }}
"""


class Configured:
    """A gateway with a configuration of its own: passwords, a page that redirects elsewhere, one that not all may see."""

    def __init__(self, binary):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.origin, self.elsewhere = f"http://127.0.0.1:{port}", f"http://localhost:{port}"
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        config = folder / "gw.yaml"
        config.write_text(ELSEWHERE.format(port=port))
        subprocess.run(
            [str(binary), "user", "add", USER, "--config", str(config)], input=PASSWORD + "\n", text=True, check=True, capture_output=True)
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [str(binary), "run", "--config", str(config)], stdout=self.output, stderr=subprocess.STDOUT, text=True, cwd=folder)
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{self.origin}/public/x", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.output.seek(0)
                    raise AssertionError(f"the gateway does not start:\n{self.output.read()}") from None
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.folder.cleanup()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Client:
    """A program with cookies of its own, which follows no redirects."""

    def __init__(self, gateway):
        self.gateway = gateway
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(
            NoRedirects, urllib.request.HTTPSHandler(context=trusting), urllib.request.HTTPCookieProcessor(self.jar))

    def send(self, path, form=None, fields=None):
        """Status, fields and text; a form is posted."""
        data = None if form is None else urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(f"{self.gateway.origin}{path}", data, fields or {})
        try:
            with self.opener.open(request, timeout=30) as response:
                return response.status, response.headers, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def with_cookie(self, path, value):
        """The status with that session cookie."""
        return self.send(path, fields={"Cookie": f"{self.gateway.prefix}={value}"})[0]

    def events(self):
        """What the webhook has got."""
        with urllib.request.urlopen(self.gateway.events, timeout=30) as response:
            return [json.loads(line) for line in response.read().decode().splitlines() if line]
