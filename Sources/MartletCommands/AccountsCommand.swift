internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletServer
private import Synchronization

/// `martlet accounts copy`: copies the accounts of an SQLite file to PostgreSQL.
struct AccountsCommand {
    private static let interval = Duration.seconds(2)

    private let source: AccountURL
    private let target: AccountURL
    private let isFinal: Bool

    /// - Throws: `UsageError` unless the word is `copy` and both databases are named.
    init(_ options: Options) throws(Options.UsageError) {
        guard options.words.first == "copy" else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: ["copy"])
            throw Options.UsageError(message: "expected copy\(hint)")
        }
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
