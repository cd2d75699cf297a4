internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletServer
private import Synchronization

/// `martlet accounts copy|migrate`: works on the account store as a whole.
enum AccountsCommand {
    case copy(AccountCopyCommand)
    case migrate(AccountMigrationCommand)

    /// - Throws: `UsageError` unless the word is a command, with its options alone.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        let words = ["copy", "migrate"]
        switch options.words.first {
        case "copy": self = .copy(try AccountCopyCommand(options))
        case "migrate": self = .migrate(try AccountMigrationCommand(options, registry))
        default:
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: words)
            throw Options.UsageError(message: "expected one of \(words.joined(separator: ", "))\(hint)")
        }
    }

    func run() async -> ExitCode {
        switch self {
        case .copy(let command): await command.run()
        case .migrate(let command): await command.run()
        }
    }

    /// - Throws: `UsageError` if an option of the other command is given.
    static func forbid(_ names: [String], _ options: Options, other: String) throws(Options.UsageError) {
        for name in names where options[name] != nil || options.has(name) {
            throw Options.UsageError(message: "--\(name) is for \(other) alone")
        }
    }
}

/// `martlet accounts copy`: copies the accounts of an SQLite file to PostgreSQL.
struct AccountCopyCommand {
    private static let interval = Duration.seconds(2)

    private let source: AccountURL
    private let target: AccountURL
    private let isFinal: Bool

    /// - Throws: `UsageError` unless both databases are named.
    init(_ options: Options) throws(Options.UsageError) {
        try AccountsCommand.forbid(["config", "check", "json"], options, other: "migrate")
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
        guard let text = options[name] else { throw Options.UsageError(message: "copy requires --\(name)") }
        do throws(AccountError) {
            return try AccountURL(text)
        } catch {
            throw Options.UsageError(message: "--\(name): \(error.message)")
        }
    }

    func run() async -> ExitCode {
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            let tables = try await copy(services)
            for table in tables { Output.line("\(table.name): \(table.rows) rows, SHA-256 \(table.digest)") }
            Output.line(isFinal ? "verified; the source is read-only now" : "verified")
            return .ok
        } catch {
            Output.error(TerminalText.escaped("martlet accounts copy: \(error)") + "\n")
            return error.exit
        }
    }

    private func copy(_ services: Services) async throws(StartError) -> [CopiedTable] {
        let last = Mutex(services.clock.monotonicTime)
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
                code: error.code, message: error.message, exit: rejected.contains(error.code) ? .rejected : .unavailable
            )
        }
    }
}
