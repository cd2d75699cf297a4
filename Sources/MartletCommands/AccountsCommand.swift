internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer

/// `martlet accounts copy|migrate`: works on the account store as a whole.
enum AccountsCommand: Command {
    case copy(AccountCopyCommand)
    case migrate(AccountMigrationCommand)

    /// - Throws: `UsageError` for a database that cannot be copied from or to.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        switch options.words.first {
        case "copy": self = .copy(try AccountCopyCommand(options))
        default: self = .migrate(AccountMigrationCommand(options, program.registry))
        }
    }

    var title: String {
        switch self {
        case .copy: "accounts copy"
        case .migrate: "accounts migrate"
        }
    }

    func run() async throws(StartError) -> ExitCode {
        switch self {
        case .copy(let command): try await command.run()
        case .migrate(let command): try await command.run()
        }
    }

    static let grammar = CommandGrammar("accounts", "Copy the account store, or upgrade its schema") { grammar in
        grammar.subcommands = [
            CommandGrammar("copy", "Copy all accounts from SQLite to PostgreSQL") { copy in
                copy.details = """
                    Copies all accounts, users and what belongs to them from an SQLite file to PostgreSQL, while gateways use
                    the file, and compares both at the end. Repeat a run that was interrupted: it goes on where it was. A
                    later run brings what has changed since.
                    """
                copy.options = [
                    .value("from", "sqlite:PATH", .text, "the source, which keeps its data").required,
                    .value(
                        "to", "postgresql://...", .url,
                        "the target: a database that nothing else has written to; a password may also come from ~/.pgpass "
                            + "or PGPASSWORD"
                    ).required,
                    .flag("final", "make the source read-only (accounts.moved), and copy events and jobs as well"),
                ]
                copy.exits = [
                    .ok: "both are the same",
                    .rejected: "the target has accounts of its own, was completed before, or differs",
                    .unavailable: "a database is unavailable or has another schema",
                ]
            },
            CommandGrammar("migrate", "Upgrade the schema of the account store") { migrate in
                migrate.details = """
                    Upgrades the schema of the configured account store, which gateways otherwise do when they start. It waits
                    for others that use the tables, and is safe to run at several machines at the same time.
                    """
                migrate.options = [
                    .flag("check", "change nothing: only say whether there is something to upgrade"), .json, .config,
                ]
                migrate.exits = [
                    .ok: "the schema is current, or that of the next version",
                    .rejected: "with --check: it is behind, or there is none yet",
                    .unavailable: "the database is unavailable or has a still newer schema",
                    .configuration: "the configuration has errors or no accounts:",
                ]
            },
        ]
        grammar.exits = [
            .ok: "done", .rejected: "the target cannot be used or differs; with --check: the schema is behind",
            .unavailable: "a database is unavailable or has another schema",
            .configuration: "the configuration has errors or no accounts:",
        ]
        grammar.example(
            "martlet accounts copy --from sqlite:martlet.db --to postgresql://martlet@db/martlet", "before the last run"
        )
        grammar.example("martlet accounts migrate --check", "before an upgrade")
    }
}

/// `martlet accounts copy`: copies the accounts of an SQLite file to PostgreSQL.
struct AccountCopyCommand {
    private static let interval = Duration.seconds(2)

    private let source: AccountURL
    private let target: AccountURL
    private let isFinal: Bool

    /// - Throws: `UsageError` unless the source is SQLite and the target PostgreSQL.
    init(_ options: Options) throws(Options.UsageError) {
        source = try Self.url(options, "from")
        target = try Self.url(options, "to")
        guard case .sqlite = source else {
            throw Options.UsageError(message: "--from must start with sqlite:")
        }
        guard case .postgresql = target else {
            throw Options.UsageError(message: "--to must start with postgresql://")
        }
        isFinal = options.has("final")
    }

    private static func url(_ options: Options, _ name: String) throws(Options.UsageError) -> AccountURL {
        do throws(AccountError) {
            return try AccountURL(options[name] ?? "")
        } catch {
            throw Options.UsageError(message: "--\(name): \(error.message)")
        }
    }

    func run() async throws(StartError) -> ExitCode {
        let services = try Services.ofCommand()
        defer { services.shutdown() }
        let tables = try await copy(services)
        for table in tables { Output.line("\(table.name): \(table.rows) rows, SHA-256 \(table.digest)") }
        Output.line(isFinal ? "verified; the source is read-only now" : "verified")
        return .ok
    }

    private func copy(_ services: Services) async throws(StartError) -> [CopiedTable] {
        let last = Lock(services.clock.monotonicTime)
        let clock = services.clock
        do throws(AccountError) {
            let copy = try AccountCopy(
                from: source, to: target, clock: clock, logger: services.logger, loop: services.loop,
                resolver: services.resolver
            ) { progress in
                let isDue = last.withLock { last in
                    guard clock.monotonicTime.since(last) >= Self.interval else { return false }
                    last = clock.monotonicTime
                    return true
                }
                if isDue { Output.error("… \(progress.table): \(progress.rows) rows\n") }
            }
            return try await copy.run(isFinal: isFinal)
        } catch {
            let rejected: [ErrorCode] = [.accountsCopyConflict, .accountsCopyDone, .accountsCopyDiffers]
            throw StartError(
                code: error.code, message: TerminalText.escaped(error.message),
                exit: rejected.contains(error.code) ? .rejected : .unavailable)
        }
    }
}
