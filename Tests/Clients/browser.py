"""A browser without a screen: follows redirects, keeps cookies, and presses the button on the simulated Apple's page."""

import html
import http.cookiejar
import http.server
import re
import threading
import urllib.error
import urllib.parse
import urllib.request


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Browser:
    def __init__(self):
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(NoRedirects, urllib.request.HTTPCookieProcessor(self.jar))

    @property
    def cookies(self):
        return "; ".join(f"{one.name}={one.value}" for one in self.jar)

    def send(self, url, members=None, headers=None):
        """:returns: status, fields and text of the response, whatever its status."""
        data = None if members is None else urllib.parse.urlencode(members).encode()
        request = urllib.request.Request(url, data, {"Sec-Fetch-Mode": "navigate", **(headers or {})})
        try:
            response = self.opener.open(request, timeout=20)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, response.headers, response.read().decode()

    def sign_in(self, url):
        """Opens an address that leads to Apple, signs in there, and returns where the gateway sends the browser."""
        _, fields, _ = self.send(url)
        asked = fields["Location"]
        members = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked).query, keep_blank_values=True))
        members |= {"page_action": "continue", "page_account": "me", "page_email": "me@example.com"}
        _, _, page = self.send(asked.partition("?")[0], members)
        action = html.unescape(re.search(r'action="([^"]+)"', page).group(1))
        found = re.findall(r'name="(state|code|id_token|user)" value="([^"]*)"', page)
        _, fields, _ = self.send(action, {name: html.unescape(value) for name, value in found}, {"Origin": "http://" + urllib.parse.urlsplit(asked).netloc})
        return fields["Location"]


def serve_browser():
    """A server for clients in other languages: the body is an address to open, the response where signing in ends.

    :returns: its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            url = self.rfile.read(int(self.headers["Content-Length"])).decode()
            reached = Browser().sign_in(url).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reached)))
            self.end_headers()
            self.wfile.write(reached)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/"
