/// The texts of `martlet COMMAND --help`.
enum CommandHelp {
    /// The help of a command; `nil` for an unknown command.
    static func text(of command: String) -> String? {
        pages.first { $0.command == command }.map { "usage: martlet \($0.command) \($0.text)" }
    }

    private static let configOption =
        "  --config FILE      the configuration file; default: config.yaml in the working directory"

    private static let adminOptions = """
        \(configOption)
          --admin URL        the admin listener, such as http://127.0.0.1:9901 or unix:/run/martlet-admin.sock, instead of
                             the one in the configuration
          --token-file FILE  the admin token; default: that of the configuration, or $MARTLET_ADMIN_TOKEN_FILE
        """

    private static let pages: [(command: String, text: String)] = [
        (
            "init",
            """
            [--config FILE]

            Writes a commented starter configuration. It never overwrites a file.

              --config FILE      the file to write; default: config.yaml in the working directory

            Exit codes: 0 written, 78 the file exists or cannot be written, 64 usage.
            """
        ),
        (
            "run",
            """
            [--config FILE] [--listen ADDRESS]

            Serves until SIGTERM or SIGINT, which let requests in progress finish. SIGHUP reloads the configuration.

            \(configOption)
              --listen ADDRESS   an address that replaces server.listen: 127.0.0.1:8080, [::1]:8080, unix:/run/a.sock

            Exit codes: 0 clean shutdown, 69 an address is in use, 78 the configuration has errors, 64 usage.
            """
        ),
        ("check", check), ("explain", explain),
        (
            "demo",
            """
            [--listen ADDRESS] [--tls] [--plugin FILE]...

            A gateway in front of an echo upstream, with a simulated Apple and a simulated WeChat; prints an address to open
            in a browser, and curl commands.

              --listen ADDRESS   the listener's address; default: 127.0.0.1:8080, or a free port if that is in use
              --tls              listen with TLS and a generated certificate
              --plugin FILE      a shared library whose provider brings a simulator of its own

            Exit codes: 0 stopped by SIGTERM or SIGINT, 69 the address is in use, 78 a library cannot be used, 64 usage.
            """
        ),
        ("simulate", simulate),
        (
            "user",
            """
            add|passwd|disable|enable|delete|show|unlock NAME | list [--disabled] [--limit N] [--after NAME]
                 [--json] [--config FILE] [--provider NAME]

            Manages password users in the account store. The password is read from a prompt on a terminal, otherwise from
            the first line of standard input, of which the rest is ignored; it is never an argument. passwd, disable and
            delete end the user's sessions, unlock ends the throttling after failed logins.

            \(configOption)
              --provider NAME    the provider, if several providers store users
              --disabled         list only users that are disabled
              --limit N          list at most N users
              --after NAME       list the users behind this name: the last one of the page before
              --json             print JSON

            Exit codes: 0 done, 69 a store is unavailable, 78 the configuration has errors or no user store, or unlock
            needs a store that instances share, 64 usage.
            """
        ),
        (
            "keygen",
            """
            accounts|store [--out FILE]

            Prints a new key: 32 random bytes in base64.

              accounts           for accounts.key_file, which encrypts what issuers grant, such as Apple's refresh tokens
              store              for store.seal.key_file, which authenticates what instances read from the store
              --out FILE         write the key to FILE, which must not exist yet and only its owner may read

            Exit codes: 0 done, 64 usage, 70 no random bytes are available, 78 the file exists or cannot be written.
            """
        ),
        (
            "plugin",
            """
            new NAME [--api FOLDER]

            Writes a folder NAME with the package of a provider in a shared library, which builds and passes its tests as it
            is. NAME is that of a Swift type, such as Line; the provider's kind is then line. An existing folder is not
            touched.

              --api FOLDER       the public API; default: ../lib/martlet/api beside the executable

            Exit codes: 0 written, 78 the folder exists or cannot be written, or there is no API, 64 usage.
            """
        ),
        (
            "account",
            """
            list [--disabled] [--claim NAME=VALUE] [--limit N] [--after SUBJECT] | show SUBJECT
                 | set SUBJECT NAME=VALUE... | unset SUBJECT NAME... | disable SUBJECT | enable SUBJECT
                 | delete SUBJECT [--json] [--config FILE]

            Manages the accounts in the account store. Claims of an account are delivered like those of its providers, and win
            over them, within a second and without ending sessions. Disabling an account ends its sessions and rejects its
            credentials of every kind until it is enabled again. Deleting an account does the same as its owner's
            DELETE /auth/account: its sessions end, running gateways revoke what its issuers granted, and account.deleted
            has the reason operator.

              set SUBJECT role=staff       a text
              set SUBJECT teams=a,b        a list of texts; \\, is a comma, \\\\ a backslash
              set SUBJECT level:=3         a value as JSON: a number, true, "a, b", ["a"]

            \(configOption)
              --disabled         list only accounts that are disabled
              --claim CLAIM      list only accounts with this claim, set by set or by the configuration; in a list, one of
                                 its values is enough
              --limit N          list at most N accounts
              --after SUBJECT    list the accounts behind this subject: the last one of the page before
              --json             print JSON

            Exit codes: 0 done, 64 no such account, a claim that cannot be set, or usage, 69 a store is unavailable, 78 the
            configuration has errors or no accounts:, or set and unset need a store that instances share.
            """
        ),
        (
            "accounts",
            """
            copy --from sqlite:PATH --to postgresql://... [--final]
                 | migrate [--check] [--json] [--config FILE]

            copy copies all accounts, users and what belongs to them from an SQLite file to PostgreSQL, while gateways use the
            file, and compares both at the end. Repeat a run that was interrupted: it goes on where it was. A later run
            brings what has changed since.

              --from URL         the source, which keeps its data
              --to URL           the target: a database that nothing else has written to; a password may also come from
                                 ~/.pgpass or PGPASSWORD
              --final            make the source read-only (accounts.moved), and copy events and jobs as well

            Exit codes: 0 both are the same, 1 the target has accounts of its own, was completed before, or differs, 69 a
            database is unavailable or has another schema, 64 usage.

            migrate upgrades the schema of the configured account store, which gateways otherwise do when they start. It
            waits for others that use the tables, and is safe to run at several machines at the same time.

              --check            change nothing: only say whether there is something to upgrade
            \(configOption)
              --json             print JSON

            Exit codes: 0 the schema is current, or that of the next version, 1 with --check: it is behind, or there is
            none yet, 69 the database is unavailable or has a still newer schema, 78 the configuration has errors or no
            accounts:, 64 usage.
            """
        ),
        ("key", key),
        (
            "session",
            """
            list|end --subject SUBJECT [--id ID] [--provider NAME] [--limit N] [--after ID] [--json] [--config FILE]

            Shows the sessions of a subject, or ends one of them or all. Needs a store that instances share: with memory: the
            sessions are in the memory of the running gateway.

            \(configOption)
              --subject SUBJECT  the subject, as upstreams see it
              --id ID            end only this session, as list shows it
              --provider NAME    list only sessions that this provider created
              --limit N          list at most N sessions, the newest first
              --after ID         start the list behind this session
              --json             print JSON: list an array, end an object

            Exit codes: 0 done, 64 no such session, or usage, 69 the store is unavailable, 78 the configuration has errors or
            the store is not shared.
            """
        ),
        (
            "events",
            """
            list [--hook NAME] [--state open|dead] [--json] | resend ID [--config FILE]

            Shows the events in the outbox that a webhook has not received, the oldest first, or sends one of them again.

            \(configOption)
              --hook NAME        only deliveries to this webhook
              --state STATE      only those that will be attempted (open) or were given up (dead)
              --json             print a JSON array

            Exit codes: 0 done, 69 the account store is unavailable or does not have the event, 78 the configuration has
            errors or no accounts:, 64 usage.
            """
        ),
        (
            "apple",
            """
            migrate export --to TEAMID [--output FILE] | migrate import [FILE]
                 [--dry-run] [--json] [--config FILE] [--provider NAME]

            Moves the users of Sign in with Apple to another developer team. export is run with the key of the old team and
            stores a transfer identifier for each user; import is run with the key of the new team and stores the user's new
            identifier. Accounts keep their subjects, claims and sessions. Repeat a run that was interrupted: it goes on
            where it was.

            \(configOption)
              --provider NAME    the provider, if several are of kind apple
              --to TEAMID        the team that gets the app
              --output FILE      also write all users that were exported to this team, for an import into another account
                                 store; - for standard output
              FILE               import users whom such a file lists, too; - for standard input
              --dry-run          only count; Apple is only asked whether the key is accepted
              --json             print one JSON document

            Exit codes: 0 done, 1 some users failed, 69 Apple or the account store is unavailable or refuses, run it again,
            70 the file cannot be written, 78 the configuration has errors, no accounts: or no key, 64 usage.
            """
        ),
        (
            "schema",
            """
            [--plugin FILE]...

            Prints the JSON Schema (2020-12) of the configuration, for editors.

              --plugin FILE  the shared library of a plugin, whose kinds of providers the schema has, too; repeatable

            Exit codes: 0 printed, 70 the output cannot be written, 78 a library cannot be used, 64 usage.
            """
        ),
        (
            "reload",
            """
            [--config FILE] [--admin URL] [--token-file FILE]

            Has the running gateway reload its configuration, through its admin listener, and waits for the result.

            \(adminOptions)

            Exit codes: 0 reloaded, 78 the new configuration has errors, which are printed, and the old one stays in
            effect, 69 no gateway is running, 64 usage.
            """
        ),
        (
            "upstream",
            """
            list | drain NAME URL | restore NAME URL [--json] [--config FILE] [--admin URL] [--token-file FILE]

            Shows the state of the running gateway's endpoints, or takes one out of use and back, through its admin
            listener. Requests that an endpoint has are finished; it gets no others until it is restored or the gateway
            ends. NAME is that of the upstream, URL that of the endpoint, as they stand in the configuration.

            \(adminOptions)
              --json             the response of the gateway, as JSON

            Exit codes: 0 done, 69 no such upstream or endpoint, or no gateway is running, 78 the configuration has
            errors, 64 usage.
            """
        ),
        (
            "health",
            """
            [--config FILE] [--admin URL] [--token-file FILE]

            Queries the admin listener of the running gateway whether it is ready; for container health checks.

            \(adminOptions)

            Exit codes: 0 ready, 69 not ready or not running, 78 the configuration has errors, 64 usage.
            """
        ),
        (
            "version",
            """


            Prints the version. Takes no options.
            """
        ),
        (
            "help",
            """
            [COMMAND]

            Prints the list of commands, or the help of one command.
            """
        ),
    ]

    private static let check = """
        [--config FILE] [--online] [--strict] [--format text|json]

        Reports all errors and warnings of a configuration, without starting anything.

        \(configOption)
          --online           also checks the dependencies: every Redis permission that is needed, the account store,
                             issuers' keys, the providers' APIs and the upstreams
          --strict           treat warnings as errors
          --format FORMAT    text (default): file:line:column: error: text [code]; json: one document on standard output

        Exit codes: 0 valid, 78 an error, or with --strict a warning, 69 a dependency is unavailable, 64 usage.
        """

    private static let explain = """
        --path PATH | --url URL [--method M] [--host H] [--header LINE]... [--token FILE | --as FILE] [--json]

        Explains how a request would be handled: its route, the provider's checks, the conditions, the headers that the
        upstream receives. Nothing is sent to an upstream; session tokens and accounts are looked up without changes.

        \(configOption)
          --path PATH        path and query, as in the request line
          --url URL          host, path and query: https://api.example.com/v1/orders?page=2
          --method METHOD    default: GET
          --host HOST        the Host header; default: the first listener's address
          --header LINE      another header, 'Name: value'; may be repeated
          --token FILE       a file with a bearer token, - for standard input
          --as FILE          a JSON file with the assumed caller, instead of a credential; - for standard input
          --json             print one JSON document

        Exit codes: 0 forwarded, 1 rejected, 69 undecidable because a dependency is unavailable, 78 the configuration has
        errors, 64 usage.
        """

    private static let key = """
        create --subject SUBJECT [--account] [--claims NAME=VALUE]... [--scope A,B] [--expires DURATION]
                 | list [--limit N] [--after ID] | revoke ID | rotate ID [--grace DURATION]
                 [--json] [--config FILE] [--provider NAME]

        Manages the API keys of a provider of kind api_key, in the account store or in its keys_file. create and rotate print
        the key on standard output, and never again: only a digest of it is stored. A change reaches running gateways within
        a second.

          --subject SUBJECT  whose key it is: upstreams see <provider>:SUBJECT
          --account          SUBJECT is that of an account, which upstreams see as it is, with its claims
          --claims CLAIM     a claim of the key: role=partner is a text, teams=a,b a list, level:=3 a value as JSON; may be
                             repeated
          --scope A,B        the scopes of the key, as the claim scope; may be repeated
          --expires DURATION when the key expires, such as 90d; default: never
          --grace DURATION   for how long rotate leaves the old key valid, too; default: 0s
          --limit N          list at most N keys
          --after ID         list the keys behind this id: the last one of the page before
        \(configOption)
          --provider NAME    the provider, if several have keys
          --json             print JSON

        Exit codes: 0 done, 64 no such key or account, or usage, 69 a store is unavailable or the file cannot be changed,
        78 the configuration has errors or no provider with keys.
        """

    private static let simulate = """
        apple [--listen ADDRESS] [--team TEAMID --key KEYID=FILE...] [--refresh-limit N]
                 | wechat [--listen ADDRESS] [--app ID:SECRET:VARIANT]...

        A local Apple that signs any token, or a local WeChat that issues codes, to test a configuration against. Prints
        the configuration for it and curl commands. Its tokens prove nothing: do not expose it to a network.

          --listen ADDRESS   the address to listen on, IP:PORT; default: a free port on 127.0.0.1
          --team TEAMID      Apple only: the developer's team, ten characters of A-Z 0-9
          --key KEYID=FILE   Apple only: the id and the PEM file, private or public, of a P-256 key of the team; may be
                             repeated. Default: a generated key SIMKEY0001 of the team SIMTEAM001
          --refresh-limit N  Apple only: throttle a refresh token after N verifications in a day; default: no limit
          --app APP          WeChat only: an application as ID:SECRET:VARIANT, where VARIANT is mobile, website,
                             official_account or mini_program; may be repeated. Default: one application of each variant

        Exit codes: 0 stopped by SIGTERM or SIGINT, 69 the address is in use, 64 usage.
        """
}
