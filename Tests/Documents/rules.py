"""The expected results of every command and every block of the pages. An unused entry is an error, too."""

import dataclasses

GUIDES = "Sources/MartletServer/Documentation.docc/"
PASSWORD = "correct horse battery"


@dataclasses.dataclass(frozen=True)
class Rule:
    """How the commands of a page that begin with `start` are typed.

    `status` is the HTTP status, `prints` has to be in the output, `given` goes to standard input. With `status` or `asks` a
    gateway is running. With `serves` the command keeps running while later ones are typed; with `is_apart` it runs in an empty
    folder. With `excuse` it is not typed at all; of `make` the target and the options are checked.
    """

    page: str
    start: str
    code: int = 0
    status: int = 0
    prints: str = ""
    given: str = ""
    asks: bool = False
    serves: bool = False
    is_apart: bool = False
    excuse: str = ""


TYPED_TWICE = f"{PASSWORD}\n{PASSWORD}\n"
RULES = [
    Rule("README.md", "make run", excuse="builds, and serves the demo, which DemoTests starts"),
    Rule("README.md", "make test", excuse="runs this test among others"),
    Rule("README.md", "martlet check", prints="ok"),
    Rule("README.md", "martlet user add ada", given=TYPED_TWICE, prints="ada"),
    Rule("README.md", "martlet run", serves=True),
    Rule("README.md", "curl -d username=ada", status=200, prints='"access_token":"mat_'),
    Rule("README.md", "curl -H 'Authorization: Bearer mat_", status=200, prints='"x-user-id":"usr_'),
    Rule("README.md", "curl -d refresh_token=", status=200, prints='"refresh_token":"mrt_'),
    Rule("README.md", "martlet explain", prints="X-User-Id"),
    Rule("README.md", "martlet status", prints="ready"),
    Rule("README.md", "martlet tail", excuse="runs until it is interrupted; EventsTests interrupts it"),
    Rule("README.md", "martlet session list", excuse="needs a subject with sessions; OneNounTests has one"),
    Rule("config.yaml", "martlet run", serves=True),
    Rule("config.yaml", "curl -i http://127.0.0.1:8080/public/hello", status=200),
    Rule("config.yaml", "curl -i http://127.0.0.1:8080/v1/orders", status=401, prints="credential_missing"),
    Rule("config.yaml", "curl -i http://127.0.0.1:9901/readyz", status=200, prints='"status"'),
    Rule("config.yaml", "martlet check", prints="ok"),
    Rule("config.yaml", "martlet schema", prints="$id"),
    Rule("config.yaml", "kill -HUP"),
    Rule("FromOAuth2Proxy.md", "echo"),
    Rule("FromOAuth2Proxy.md", "martlet explain", prints="X-Forwarded-User: u-ada"),
    Rule("FromAuthelia.md", "echo"),
    Rule("FromAuthelia.md", "martlet explain", prints="Remote-User: ada"),
    Rule("FromEnvoyJWT.md", "echo"),
    Rule("FromEnvoyJWT.md", "martlet explain", prints="X-User: u-ada"),
    Rule("FromNginxLua.md", "echo"),
    Rule("FromNginxLua.md", "martlet explain", prints="X-User: u-ada"),
    Rule("Installing.md", "make", excuse="builds packages; Tests/Packages does, and installs them"),
    Rule("Installing.md", "apt-get install", excuse="as above"),
    Rule("Installing.md", "runuser", excuse="as above"),
    Rule("Installing.md", "setpriv", excuse="as above"),
    Rule("Installing.md", "systemctl", excuse="as above"),
    Rule("Installing.md", "journalctl", excuse="as above"),
    Rule("Installing.md", "martlet keygen accounts", excuse="as above"),
    Rule("Installing.md", "podman run", excuse="needs podman; Tests/Packages runs the image without it"),
    Rule("Installing.md", "helm install", excuse="needs a cluster"),
    Rule("APIKeys.md", "martlet key create", prints="mak_"),
    Rule("APIKeys.md", "martlet key list --json", prints='"subject":"billing"'),
    Rule("APIKeys.md", "martlet key list", prints="\tbilling\tactive\t"),
    Rule("APIKeys.md", "martlet key rotate", excuse="needs the id of a key; KeyCommandTests has one"),
    Rule("APIKeys.md", "martlet key revoke", excuse="as above"),
    Rule("Accounts.md", "sqlite3 martlet.db"),
    Rule("Accounts.md", "martlet keygen accounts"),
    Rule("Accounts.md", "martlet accounts migrate --check", prints="is current"),
    Rule("Accounts.md", "martlet accounts migrate", prints="is current"),
    Rule("Accounts.md", "martlet accounts copy", excuse="needs PostgreSQL; AccountCopyTests has one"),
    Rule("Benchmarks.md", "make bench", excuse="takes minutes to half an hour, and is meaningful only on an idle machine"),
    Rule("Benchmarks.md", "make floods", excuse="takes a minute to half an hour, and is a separate step in .ci/run"),
    Rule("Benchmarks.md", "make load", asks=True, prints="requests in"),
    Rule("Operations.md", "martlet init", is_apart=True),
    Rule("Operations.md", "martlet check --config config.yaml --online", prints="ok"),
    Rule("Operations.md", "martlet check config.yaml", prints="ok"),
    Rule("Operations.md", "martlet run", serves=True),
    Rule("Operations.md", "martlet explain --path", prints="forwarded"),
    Rule("Operations.md", "martlet explain --url https://api.example.com/v1/orders --method POST", code=1, prints="401"),
    Rule("Operations.md", "martlet explain --url https://api.example.com/v1/orders --as caller.json", prints='"forwarded"'),
    Rule("Operations.md", "mv martlet.new"),
    Rule("Operations.md", "systemctl", excuse="needs systemd; TakeoverTests sends the signal"),
    Rule("Operations.md", "martlet user add alice", given=TYPED_TWICE, prints="alice"),
    Rule("Operations.md", "martlet user passwd alice"),
    Rule("Operations.md", "martlet user disable alice"),
    Rule("Operations.md", "martlet user list", prints="alice\tdisabled"),
    Rule("Operations.md", "martlet user show alice", prints="no account yet"),
    Rule("Operations.md", "martlet user unlock alice", excuse="needs Redis; UserUnlockTests has one"),
    Rule("Operations.md", "martlet user delete alice", prints="user 'alice' deleted"),
    Rule("Operations.md", "martlet account list --disabled --json", prints="[]"),
    Rule("Operations.md", "martlet account list --claim role=staff"),
    Rule("Operations.md", "martlet account set", excuse="needs Redis and a subject; AccountClaimCommandTests has them"),
    Rule("Operations.md", "martlet account unset", excuse="as above"),
    Rule("Accounts.md", "martlet account set", excuse="as above"),
    Rule("Accounts.md", "martlet account unset", excuse="as above"),
    Rule("Accounts.md", "martlet account list --claim role=staff --limit 100"),
    Rule("Operations.md", "martlet account list"),
    Rule("Operations.md", "martlet account show", asks=True, code=64, prints="account not found"),
    Rule("Operations.md", "martlet account disable", asks=True, code=64, prints="account not found"),
    Rule("Operations.md", "martlet account enable", asks=True, code=64, prints="account not found"),
    Rule("Operations.md", "martlet account delete", asks=True, code=64, prints="account not found"),
    Rule("Operations.md", "martlet session list", asks=True),
    Rule("Operations.md", "martlet session end --id", asks=True, code=64, prints="no such session"),
    Rule("Operations.md", "martlet session end --subject", asks=True, code=64, prints="no such subject"),
    Rule("Operations.md", "martlet keygen accounts"),
    Rule("Operations.md", "martlet keygen store"),
    Rule("Operations.md", "martlet keygen audit"),
    Rule("Audit.md", "martlet keygen audit"),
    Rule("Audit.md", "chmod 600 audit.key"),
    Rule("Audit.md", "openssl pkey"),
    Rule("Audit.md", "martlet audit verify", excuse="needs the log of a gateway that has run; AuditTests has one"),
    Rule("Operations.md", "chmod 600 account.key"),
    Rule("SigningIn.md", "martlet simulate apple", serves=True),
    Rule("SigningIn.md", "curl -s -H 'Content-Type: application/json'", status=200, prints="identity_token"),
    Rule("SigningIn.md", "curl -i -H 'Content-Type: application/json'", status=200, prints='"access_token":"mat_'),
    Rule("SignInWithApple.md", "martlet keygen accounts"),
    Rule("SignInWithApple.md", "chmod 600", excuse="the key's file comes from Apple"),
    Rule("SignInWithApple.md", "martlet check", prints="ok"),
    Rule("SignInWithApple.md", "curl -H 'Content-Type: application/json' -d '{\"identity_token", excuse="of Apple; the simulator's is below"),
    Rule("SignInWithApple.md", "curl -i -X DELETE -H 'Authorization: Bearer ACCESS_TOKEN' https://auth", excuse="as above"),
    Rule("SignInWithApple.md", "martlet apple migrate export", excuse="needs a transfer between two teams, as AppleMigrationTests makes it"),
    Rule("SignInWithApple.md", "martlet apple migrate import", excuse="needs a transfer between two teams, as AppleMigrationTests makes it"),
    Rule("SignInWithApple.md", "martlet simulate apple", serves=True),
    Rule("SignInWithApple.md", "curl -s -o AuthKey_SIMKEY0001.p8"),
    Rule("SignInWithApple.md", "curl -s -H 'Content-Type: application/json' -d '{\"audience", status=200, prints="authorization_code"),
    Rule("SignInWithApple.md", "curl -i -H 'Content-Type: application/json'", status=200, prints='"access_token":"mat_'),
    Rule(
        "SignInWithApple.md",
        "curl -s -H 'Content-Type: application/json' -d '{\"team_id\"",
        status=200,
        prints="private_key",
    ),
    Rule(
        "SignInWithApple.md",
        "curl -s -H 'Content-Type: application/json' -d '{\"from_team\"",
        status=200,
        prints='"open":true',
    ),
    Rule("SignInWithApple.md", "curl -s http://127.0.0.1:9101/simulator/requests", status=200, prints="/auth/token"),
    Rule("SignInWithApple.md", "curl -s -H 'Authorization: Bearer mat_…' http://127.0.0.1:8080/auth/account", status=200, prints="authorized"),
    Rule("SignInWithApple.md", "curl -s -H 'Content-Type: application/json' -d '{\"url", status=200, prints='"status":200'),
    Rule("SignInWithApple.md", "curl -s -H 'Authorization: Bearer mat_…' http://127.0.0.1:8080/auth/session", status=401),
    Rule("SignInWithApple.md", "curl -i -X DELETE -H 'Authorization: Bearer mat_…' http://127", status=202),
    Rule("SignInWithApple.md", "curl -s http://127.0.0.1:9901/accounts", status=200, prints='"state":"ready"'),
    Rule("FromAnIOSApp.md", "martlet simulate apple", serves=True),
    Rule("FromAnIOSApp.md", "martlet run", serves=True),
    Rule("FromAnIOSApp.md", "curl -s -X POST http://127.0.0.1:8080/auth/nonce", status=200, prints="mno_"),
    Rule("FromAnIOSApp.md", "curl -s -H 'Content-Type: application/json' -d '{\"audience", status=200, prints="identity_token"),
    Rule("FromAnIOSApp.md", "curl -s -H 'Content-Type: application/json' -d '{\"identity_token", status=200, prints='"access_token":"mat_'),
    Rule("FromAnIOSApp.md", "curl -s -H 'Authorization: Bearer mat_…' -H", status=200, prints='"x-user-id":"usr_'),
    Rule("FromAnIOSApp.md", "curl -s -o /dev/null -D - 'http", status=302, prints="/auth/authorize"),
    Rule("FromAnIOSApp.md", "curl -s -d refresh_token", status=200, prints='"refresh_token":"mrt_'),
    Rule("FromAnIOSApp.md", "curl -i -X POST -H 'Authorization: Bearer mat_…'", status=204),
    Rule("FromAnIOSApp.md", "curl -s -H 'Authorization: Bearer mat_…' http", status=401, prints="credential_invalid"),
    Rule("FromAWebPage.md", "martlet simulate apple", serves=True),
    Rule("FromAWebPage.md", "martlet run", serves=True),
    Rule("FromAWebPage.md", "curl -s -o /dev/null -D - -H", status=302, prints="/auth/sign-in?return_to=/orders"),
    Rule("FromAWebPage.md", "curl -s http://127.0.0.1:8080/orders", status=401, prints="credential_missing"),
    Rule("FromAWebPage.md", "curl -s -c jar -o apple.html -L", status=200),
    Rule("FromAWebPage.md", "sed -n"),
    Rule("FromAWebPage.md", "curl -s -o apple.html -d @asked", status=200),
    Rule("FromAWebPage.md", "grep -oE"),
    Rule("FromAWebPage.md", "curl -i -b jar -c jar -d @returned", status=303, prints="Set-Cookie: martlet=mct_"),
    Rule("FromAWebPage.md", "curl -s -b jar -H 'X-User-Id", status=200, prints='"x-user-id":"usr_'),
    Rule("FromAWebPage.md", "curl -s -b jar -X POST", status=403, prints="cross_site"),
    Rule("FromAWebPage.md", "curl -i -b jar -c jar -X POST", status=303, prints="Set-Cookie: martlet=;"),
    Rule("FromAWebPage.md", "curl -s -b jar http", status=401, prints="credential_missing"),
    Rule("FromAnAndroidApp.md", "martlet user add ada", given=TYPED_TWICE, prints="ada"),
    Rule("FromAnAndroidApp.md", "martlet run", serves=True),
    Rule("FromAnAndroidApp.md", "curl -s -d username=ada", status=200, prints='"access_token":"mat_'),
    Rule("FromAnAndroidApp.md", "curl -s -H 'Authorization: Bearer mat_…' -H", status=200, prints='"x-user-id":"usr_'),
    Rule("FromAnAndroidApp.md", "curl -s -d refresh_token", status=200, prints='"refresh_token":"mrt_'),
    Rule("FromAnAndroidApp.md", "curl -s -H 'Authorization: Bearer mat_…' http", status=200, prints='"current":true'),
    Rule("FromAnAndroidApp.md", "curl -i -X POST -H 'Authorization: Bearer mat_…'", status=204),
    Rule("FromAWeChatApp.md", "martlet simulate wechat", serves=True),
    Rule("FromAWeChatApp.md", "martlet run", serves=True),
    Rule("FromAWeChatApp.md", "curl -s -H 'Content-Type: application/json' -d '{\"app_id", status=200, prints='"openid"'),
    Rule("FromAWeChatApp.md", "curl -s -H 'Content-Type: application/json' -d '{\"app\"", status=200, prints='"access_token":"mat_'),
    Rule("FromAWeChatApp.md", "curl -s -H 'Authorization: Bearer mat_…' -H", status=200, prints='"x-user-id":"usr_'),
    Rule("FromAWeChatApp.md", "curl -s -d refresh_token", status=200, prints='"refresh_token":"mrt_'),
    Rule("FromAWeChatApp.md", "curl -s -H 'Authorization: Bearer mat_…' http", status=200, prints='"current":true'),
    Rule("SignedRequests.md", "openssl rand"),
    Rule("SignedRequests.md", "openssl genpkey"),
    Rule("Events.md", "openssl rand -base64 32 > hook.key"),
    Rule("Events.md", "martlet events list --hook backend --state dead --json", asks=True, prints="[]"),
    Rule("Events.md", "martlet events list", asks=True),
    Rule("WeChat.md", "martlet simulate wechat", serves=True),
    Rule("Password.md", "curl -d 'username=alice'", status=200, prints='"access_token":"mat_'),
    Rule("WeChat.md", "curl -d app=ios", status=200, prints='"provider":"wechat"'),
    Rule("Plugins.md", "martlet plugin new Line", excuse="needs the collected API; SharedLibraryTests writes, builds and tests one"),
    Rule("Plugins.md", "cd Line && swift test", excuse="as above"),
    Rule("Plugins.md", "swift build -c release", excuse="as above"),
    Rule("Plugins.md", ".tools/release", excuse="takes minutes, and is a separate step in .ci/run"),
    Rule("Plugins.md", ".tools/api", excuse="needs that build; SharedLibraryTests collects the API of the build with tests"),
]


@dataclasses.dataclass(frozen=True)
class Excuse:
    """A block that is neither typed nor checked, by the beginning of its text."""

    page: str
    language: str
    start: str
    reason: str


EXCUSES = [
    Excuse("Commands.md", "text", "usage: martlet", "what --help prints; reference.py compares it, and CommandGrammarTests parses its examples"),
    Excuse("Plugins.md", "yaml", "version: 1", "needs the library; SharedLibraryTests has such a configuration"),
    Excuse("README.md", "swift", "public let accepts", "of an example; ReadmeTests compares it"),
    Excuse("Operations.md", "ini", "# martlet.socket", "systemd's; SocketActivationTests passes sockets as it does"),
    Excuse("APIKeys.md", "http", "Authorization: Bearer", "needs a key; KeyCommandTests presents one in both ways"),
    Excuse("SignedRequests.md", "http", "POST /orders", "needs a signature of this minute; SignedRequestTests sends such requests"),
    Excuse("Accounts.md", "http", "PATCH /subjects", "needs the subject of a user; AccountClaimCommandTests sends it"),
    Excuse("Accounts.md", "http", "PATCH /auth/profile", "needs the session of a user; ProfileTests sends it"),
    Excuse("Events.md", "http", "POST /hooks", "an example of what a receiver gets; WebhookTests checks a real one"),
    Excuse("WebSocket.md", "js", "socket.onclose", "runs in a browser; needs functions of the reader's page"),
    Excuse("Assertion.md", "js", "import ", "needs packages of npm"),
    Excuse("Installing.md", "nginx", "# In http { }.", "FrontProxyTests runs it"),
    Excuse("SignInWithApple.md", "swift", "import AuthenticationServices", "Tests/Clients compiles it"),
    Excuse("FromAnIOSApp.md", "swift", "import AuthenticationServices", "Tests/Clients runs it"),
    Excuse("FromAnIOSApp.md", "swift", "import Foundation\nimport Security", "as above"),
    Excuse("FromAnAndroidApp.md", "kotlin", "// Both have to", "as above"),
    Excuse("FromAWebPage.md", "html", "<a href", "as above"),
    Excuse("FromAWebPage.md", "js", "/** A request", "as above"),
    Excuse("FromAnAndroidApp.md", "kotlin", "import java.net", "as above"),
    Excuse("FromAWeChatApp.md", "kotlin", "// In the activity", "as above"),
    Excuse("FromAWeChatApp.md", "js", "const gateway", "as above"),
    Excuse("Pages.md", "html", "{{! ", "PagesGuideTests renders it"),
    Excuse("WritingAProvider.md", "swift", "public import", "GuideTests compiles it"),
    Excuse("WritingAProvider.md", "swift", "import", "GuideTests compiles it"),
    Excuse("WritingAProvider.md", "yaml", "version: 1", "of a provider that the reader writes; GuideTests checks it"),
]

# Pages whose commands need more than the first configuration on them, or which show none.
SETTINGS = {
    "Benchmarks.md": "config.yaml",
    "Installing.md": "config.yaml",
    "Operations.md": "users",
    "SignInWithApple.md": "simulator",
    "FromAnIOSApp.md": "simulator",
    "FromAWebPage.md": "simulator",
    "FromAWeChatApp.md": "simulator",
}
# Users and files that pages assume.
USERS = {"Password.md": "Alice"}
CALLER = '{ "provider": "apple", "claims": { "email": "ada@example.com", "email_verified": true } }\n'
