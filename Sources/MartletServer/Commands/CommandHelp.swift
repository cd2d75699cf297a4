/// What `martlet COMMAND --help` prints.
enum CommandHelp {
    /// The page of a command; `nil` for one that has none.
    static func text(of command: String) -> String? {
        pages.first { $0.command == command }.map { "usage: martlet \($0.command) \($0.text)" }
    }

    private static let configOption =
        "  --config FILE      the configuration; config.yaml in the working directory without it"

    private static let pages: [(command: String, text: String)] = [
        (
            "init",
            """
            [--config FILE]

            Writes a commented configuration to begin with, and never over a file that is there.

              --config FILE      where to; config.yaml in the working directory without it

            Exit codes: 0 written, 78 there is such a file already or it cannot be written, 64 usage.
            """
        ),
        (
            "run",
            """
            [--config FILE] [--listen ADDRESS]

            Serves until SIGTERM or SIGINT, which let requests finish. SIGHUP reads the configuration again.

            \(configOption)
              --listen ADDRESS   one address instead of server.listen: 127.0.0.1:8080, [::1]:8080, unix:/run/a.sock

            Exit codes: 0 ended in good order, 69 an address is taken, 78 the configuration is wrong, 64 usage.
            """
        ),
        ("check", check), ("explain", explain),
        (
            "demo",
            """
            [--listen ADDRESS] [--tls]

            A gateway before an upstream that echoes, with a simulated Apple and a simulated WeChat; prints curl lines.

              --listen ADDRESS   where clients connect to; 127.0.0.1:8080, or a free port where that is taken
              --tls              with a certificate of the demo's own

            Exit codes: 0 ended by SIGTERM or SIGINT, 69 the address is taken, 64 usage.
            """
        ),
        ("simulate", simulate),
        (
            "user",
            """
            add|passwd|disable|enable NAME | list [--config FILE] [--provider NAME]

            Password users in the account store. A password is asked for on a terminal, else it is the first line of
            standard input; it is never an argument.

            \(configOption)
              --provider NAME    whose users, where several providers keep users

            Exit codes: 0 done, 69 a store is unavailable, 78 the configuration is wrong or has no users, 64 usage.
            """
        ),
        (
            "schema",
            """


            Prints the JSON Schema (2020-12) of the configuration, for editors. It takes no options.
            """
        ),
        (
            "reload",
            """
            [--config FILE] [--address ADDRESS]

            Has a running gateway read its configuration again, through its admin listener, and waits for the outcome.

            \(configOption)
              --address ADDRESS  the admin listener's address instead of the one in the configuration

            Exit codes: 0 the new configuration is in force, 78 it has mistakes, which are printed, and the old one stays,
            69 no gateway is there, 64 usage.
            """
        ),
        (
            "health",
            """
            [--config FILE] [--address ADDRESS]

            Asks the admin listener of a running gateway whether it is ready; for the health check of a container.

            \(configOption)
              --address ADDRESS  the admin listener's address instead of the one in the configuration

            Exit codes: 0 ready, 69 not ready or not there, 78 the configuration is wrong, 64 usage.
            """
        ),
        (
            "version",
            """


            Prints the version. It takes no options.
            """
        ),
        (
            "help",
            """
            [COMMAND]

            Prints the list of commands, or what one of them takes.
            """
        ),
    ]

    private static let check = """
        [--config FILE] [--online] [--strict] [--format text|json]

        Says everything that is wrong with a configuration, all at once, and starts nothing.

        \(configOption)
          --online           also asks what the gateway depends on: Redis for each right that is needed, the account
                             store, issuers' keys, the providers' APIs and the upstreams
          --strict           warnings fail the check
          --format FORMAT    text (default): file:line:column: error: text [code]; json: one document on standard output

        Exit codes: 0 good, 78 a mistake, or with --strict a warning, 69 something that is needed is unavailable, 64 usage.
        """

    private static let explain = """
        --path PATH | --url URL [--method M] [--host H] [--header LINE]... [--token FILE | --as FILE] [--json]

        Says what would happen to a request: its route, the provider's checks, the conditions, the headers that the
        upstream gets. Nothing is sent to an upstream; session tokens and accounts are looked up, and nothing is changed.

        \(configOption)
          --path PATH        path and query, as they stand in the request line
          --url URL          host, path and query at once: https://api.example.com/v1/orders?page=2
          --method METHOD    GET without it
          --host HOST        the Host field; the first listener's address without it
          --header LINE      one more header field, 'Name: value'; may be repeated
          --token FILE       a file with a bearer token, - for standard input
          --as FILE          a JSON file that says who is calling, instead of a credential; - for standard input
          --json             one JSON document on standard output

        Exit codes: 0 forwarded, 1 refused, 69 undecidable because something could not be asked, 78 the configuration is
        wrong, 64 usage.
        """

    private static let simulate = """
        apple|wechat [--listen ADDRESS] [--app ID:SECRET:VARIANT]...

        A local Apple that signs any token, or a local WeChat that gives out codes, to test a configuration against. It
        prints the lines of a configuration that points at it, and curl lines. It proves nothing: keep it off the network.

          --listen ADDRESS   where it listens, IP:PORT; a free port on 127.0.0.1 without it
          --app APP          WeChat only: an application as ID:SECRET:VARIANT, where VARIANT is mobile, website,
                             official_account or mini_program; may be repeated. Without it there is one of each variant

        Exit codes: 0 ended by SIGTERM or SIGINT, 69 the address is taken, 64 usage.
        """
}
