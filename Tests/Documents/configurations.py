"""Completes the part of a configuration that a page shows, and adapts it to this machine."""

import re

SECTION = re.compile(r"^(\w+):", re.MULTILINE)
NAMED_FILE = re.compile(r"\b(\w+_file): *([\w./-]+)")
# The files that encrypt refresh tokens and seal the store, by their usual names: keys of another form than those of TLS
# and assertions.
RANDOM_KEYS = ("account.key", "store.key")
KINDS = {
    "apple": "apple: { kind: apple, audiences: [com.example.app] }",
    "wechat": "wechat: { kind: wechat, apps: { ios: { variant: mobile, app_id: wx0000000000000001, app_secret_file: ios } } }",
    "password": "password: { kind: password, users: accounts }",
}
# Of webhooks, accounts and the store: base64 of 32 bytes.
SIGNING_KEY = "bWFydGxldC1tYXJ0bGV0LW1hcnRsZXQtbWFydGxldCE="
# Of a signer of requests: a key pair's public half.
PUBLIC_KEY = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA%s\n-----END PUBLIC KEY-----\n" % (
    "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=")
# The content of files that are no secrets of any form.
CONTENTS = {"secret_file": SIGNING_KEY, "deny_file": "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:1\n",
            "keys_file": "", "public_key_file": PUBLIC_KEY, "logo_file": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'}


def sections(text):
    """The top-level keys of a file with their text."""
    starts = [match.start() for match in SECTION.finditer(text)] + [len(text)]
    return {SECTION.match(text, start).group(1): text[start:end] for start, end in zip(starts, starts[1:])}


def names(text, key):
    """The names in the lists under a key, wherever it occurs."""
    return [name.strip() for found in re.findall(rf"\b{key}: *\[([^\]]*)\]", text) for name in found.split(",")]


def complete(text):
    """Adds the missing sections to a part of a configuration, and nothing to a complete one."""
    found = sections(text)
    if "version" in found:
        return text
    parts = {"version": "version: 1\n", **found}
    if "routes" not in parts:
        providers = re.findall(r"^ {2}(\w+):", parts.get("providers", ""), re.MULTILINE) or ["apple"]
        stated = ", credentials: [session, direct]" if "sessions" in parts else ""
        auth = f"{{ providers: [{', '.join(providers)}]{stated} }}"
        parts["routes"] = f"routes: [{{ name: all, match: {{ path: /** }}, auth: {auth}, upstream: api }}]\n"
    if "providers" not in parts:
        wanted = dict.fromkeys(names(parts["routes"], "providers"))
        parts["providers"] = "providers:\n" + "".join(f"  {KINDS[name]}\n" for name in wanted)
    if "users: accounts" in parts["providers"]:
        parts.setdefault("accounts", 'accounts: { url: "sqlite:martlet.db" }\n')
    parts.setdefault("upstreams", 'upstreams: { api: { endpoints: ["http://127.0.0.1:9000"] } }\n')
    return "".join(parts.values())


def make_files(text, folder, pair, secret):
    """Creates every file that a configuration names: certificates and keys of one pair, otherwise a secret."""
    for key, name in NAMED_FILE.findall(text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(contents(key, path.name, pair, secret))
            path.chmod(0o600)


def contents(key, name, pair, secret):
    """What the file of a key of the configuration contains."""
    if name in RANDOM_KEYS:
        return SIGNING_KEY
    if key in CONTENTS:
        return CONTENTS[key]
    if "certificate" in key or "ca" in key.split("_"):
        return pair["certificate"]
    return pair["key"] if key in ("key_file", "private_key_file") else secret


def localized(text, ports):
    """The same configuration with the ports of this run, and with the simulators of the services that it would call.

    A configuration with a `base_url` names its services itself."""
    if "server" not in sections(text):
        text += "server: { listen: [{ address: 127.0.0.1:8080 }] }\n"
    if "admin" not in sections(text):
        text += "admin: { address: 127.0.0.1:9901, socket: \"unix:martlet.sock\" }\n"
    is_complete = "base_url:" in text
    text = local_addresses(text, ports)
    if is_complete:
        return text
    text = re.sub(r"^( *)(kind: apple)$", rf"\1\2\n\1jwks_url: {ports.apple}/auth/keys", text, flags=re.MULTILINE)
    text = text.replace("{ kind: apple,", f'{{ kind: apple, jwks_url: "{ports.apple}/auth/keys",')
    return re.sub(r"^( *)(kind: wechat)$", rf"\1\2\n\1base_url: {ports.wechat}", text, flags=re.MULTILINE).replace(
        "{ kind: wechat,", f'{{ kind: wechat, base_url: "{ports.wechat}",')


def local_addresses(text, ports):
    """Replaces the addresses on pages by those of this run."""
    text = re.sub(r"\b127\.0\.0\.1:(\d+)\b", lambda match: f"127.0.0.1:{ports.local(int(match.group(1)))}", text)
    return text.replace("https://gw.example.com", f"http://127.0.0.1:{ports.gateway}")
