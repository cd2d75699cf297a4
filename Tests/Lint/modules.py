"""In which modules the newer rules are enforced. `check.py` reports findings there alone; `check.py --counts` counts all of them."""

import re

EVERYWHERE = None
PAGES = "pages"

# Rule → modules, `PAGES` among them, or EVERYWHERE. A module is switched on when it has no findings left.
ENFORCED = {
    "given-up-word": EVERYWHERE,
    "page-width": {PAGES},
    "large-type": EVERYWHERE,
    "request-path-size": EVERYWHERE,
    "bare-handle": EVERYWHERE,
}

# The modules that a request runs through on the event loop: MartletProxy, and every module that is cut out of it.
REQUEST_PATH = {"MartletProxy", "MartletDecisions", "MartletAuthenticator", "MartletResponder"}

PATH = re.compile(r"(?:Sources|Plugins|Tests/Unit)/([^/]+)/|Tests/(\w+)/")


def module_of(path):
    """The module that a file belongs to, or `PAGES`."""
    if path.endswith(".md"):
        return PAGES
    match = PATH.match(path)
    return (match.group(1) or f"{match.group(2)}") if match else ""


def is_enforced(rule, path):
    if rule not in ENFORCED:
        return True
    modules = ENFORCED[rule]
    return modules is EVERYWHERE or module_of(path) in modules
