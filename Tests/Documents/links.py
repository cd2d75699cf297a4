"""The built site as files: every link and anchor leads somewhere, and nothing is loaded from another host."""

import html.parser
import posixpath
import re
import urllib.parse

# What a browser loads without being asked; `a` is not among them.
LOADED = {"script": ("src",), "img": ("src", "srcset"), "link": ("href",), "iframe": ("src",), "source": ("src", "srcset"),
          "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",), "use": ("href", "xlink:href")}
CSS_LOADED = re.compile(r"@import\s+(?:url\()?[\"']?([^\"')\s;]+)|url\(\s*[\"']?([^\"')]+)")
# Calls with which a script would load something by a whole URL.
JS_LOADED = re.compile(r"(?:fetch|import|importScripts|open)\(\s*[\"'`](https?:)?//")


class Page(html.parser.HTMLParser):
    """The ids, links and loaded addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.language = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        if tag == "html":
            self.language = values.get("lang", "")
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "form" and "action" in values:
            self.links.append(values["action"])
        for name in LOADED.get(tag, ()):
            if name in values:
                (self.links if values.get("rel") == "alternate" else self.loaded).append(values[name])
        self.loaded += [first or second for first, second in CSS_LOADED.findall(values.get("style", ""))]


def findings_of(site):
    """Errors of a built site, as (file, text)."""
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    pages = {file: Page((site / file).read_text(encoding="utf-8")) for file in files if file.endswith(".html")}
    for file, page in sorted(pages.items()):
        yield from page_findings(file, page, pages, files)
    for file in sorted(files):
        yield from text_findings(file, site, files)
    for file in sorted(set(pages) - reached(pages)):
        yield file, "no page links to it"


def page_findings(file, page, pages, files):
    for one in sorted({one for one in page.ids if page.ids.count(one) > 1}):
        yield file, f"two elements have the id '{one}'"
    wanted = "zh-Hans" if file.startswith("zh-Hans/") else "en"
    if page.language != wanted:
        yield file, f"its language is '{page.language}', not '{wanted}'"
    for address in page.loaded:
        if is_foreign(address):
            yield file, f"loads '{address}' from another host"
        elif not address.startswith("data:") and target_of(file, address)[0] not in files:
            yield file, f"loads '{address}', which does not exist"
    for link in page.links:
        scheme = urllib.parse.urlsplit(link).scheme
        if scheme or link.startswith("//"):
            if scheme not in ("https", "http", "mailto"):
                yield file, f"links to '{link}', which no browser opens"
            continue
        goal, anchor = target_of(file, link)
        if goal not in files:
            yield file, f"links to '{link}', which does not exist"
        elif anchor and goal in pages and anchor not in pages[goal].ids:
            yield file, f"links to '{link}', whose anchor does not exist"


def text_findings(file, site, files):
    """What style sheets load, and what scripts would load by a whole URL."""
    if file.endswith((".css", ".html")):
        text = (site / file).read_text(encoding="utf-8")
        text = text if file.endswith(".css") else "".join(re.findall(r"<style.*?</style>", text, re.DOTALL))
        for address in (first or second for first, second in CSS_LOADED.findall(text)):
            if is_foreign(address) or address.startswith("/"):
                yield file, f"loads '{address}' from another host"
            elif not address.startswith("data:") and target_of(file, address)[0] not in files:
                yield file, f"loads '{address}', which does not exist"
    elif file.endswith(".js") and not file.startswith("searchindex"):
        for match in JS_LOADED.finditer((site / file).read_text(encoding="utf-8")):
            yield file, f"loads from another host: {match.group(0)}"


def is_foreign(address):
    return address.startswith("//") or urllib.parse.urlsplit(address).scheme not in ("", "data")


def target_of(file, link):
    """The file and the anchor that a relative link of a page means."""
    parts = urllib.parse.urlsplit(link)
    path = urllib.parse.unquote(parts.path)
    goal = posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else file
    return goal, urllib.parse.unquote(parts.fragment)


def reached(pages):
    """The pages that can be reached from the first one."""
    seen, waiting = set(), ["index.html"]
    while waiting:
        file = waiting.pop()
        if file in pages and file not in seen:
            seen.add(file)
            waiting += [target_of(file, link)[0] for link in pages[file].links if not urllib.parse.urlsplit(link).scheme]
    return seen
