internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletEvents
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet apple migrate export|import`: moves the users of Sign in with Apple between developer teams.
struct MigrateCommand: Command {
    enum Action: Equatable {
        /// - Parameter output: a file for all exported users; `-` for standard output.
        case export(to: String, output: String?)
        /// - Parameter file: a file of exported users; `-` for standard input.
        case importUsers(file: String?)

        var isExport: Bool { if case .export = self { true } else { false } }
    }

    private static let kind: ProviderKind = "apple"
    private static let pageSize = 500
    /// Longer than a lease that nothing extends.
    private static let leaseTime = Duration.seconds(11)

    let action: Action
    let isTrial: Bool
    private let command: ConfiguredCommand
    private let provider: String?
    private let asJSON: Bool

    /// - Throws: `UsageError` for an invalid team ID, and for options that cannot be combined.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        command = ConfiguredCommand(options, program.registry)
        provider = options["provider"]
        isTrial = options.has("dry-run")
        asJSON = options.has("json")
        let words = options.words.dropFirst()
        action =
            words.first == "export" ? try Self.export(options) : .importUsers(file: words.dropFirst().first)
    }

    private static func export(_ options: Options) throws(Options.UsageError) -> Action {
        guard let team = options["to"], isTeam(team) else {
            throw Options.UsageError(
                message: "export requires --to with the id of the new team, 10 capital letters and digits")
        }
        if options["output"] == "-", options.has("json") {
            throw Options.UsageError(message: "--output - and --json exclude each other")
        }
        return .export(to: team, output: options["output"])
    }

    private static func isTeam(_ text: String) -> Bool {
        text.utf8.count == 10
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
    }

    func run() async throws(StartError) -> ExitCode {
        try await command.run { blueprint, services throws(StartError) in try await run(blueprint, services) }
    }

    private func run(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> ExitCode {
        // The file first: an error in it changes nothing.
        let exported = try exportedUsers()
        let graph = try Graph.ofCommand(blueprint, services, access: isTrial ? .readOnly : .full)
        defer { graph.store.shutdown() }
        guard let accounts = graph.accounts?.store else {
            throw StartError(
                code: "apple.no_accounts",
                message: "users are stored in accounts:, which the configuration does not have", exit: .configuration)
        }
        let (handle, transferring, team) = try chosen(graph.providers)
        if case .export(team, _) = action {
            throw StartError(
                code: "apple.same_team", message: "--to is the team_id of provider '\(handle.name)' itself",
                exit: .usage)
        }
        graph.recordEvents()
        let stage = Stage(
            store: accounts.transfers, provider: handle.name, transferring: transferring, team: team,
            clock: services.clock)
        return try await accounts.open { () async throws(StartError) in
            let work = { () async throws(StartError) in
                do throws(AccountError) { return try await perform(stage, exported) } catch {
                    throw StartError(error, exit: .unavailable)
                }
            }
            return try await isTrial ? work() : holdingLease(accounts, stage, work)
        }
    }

    /// Runs a body while no other run for the team does: both would ask Apple about the same users.
    private func holdingLease(
        _ leases: any LeaseStoring, _ stage: Stage, _ body: () async throws(StartError) -> ExitCode
    ) async throws(StartError) -> ExitCode {
        let clock = stage.clock
        let held: HeldLease?
        do throws(StoreError) { held = try await Self.acquire("migrate:\(stage.team)", in: leases, by: clock) } catch {
            throw StartError(error, exit: .unavailable)
        }
        guard var held else {
            throw StartError(
                code: "apple.migration_running",
                message: "another run is moving users with the key of team \(stage.team)", exit: .unavailable)
        }
        let extending = Task { [held] in
            var lease = held
            while !Task.isCancelled {
                try? await Task.sleep(for: .seconds(1))
                // A store that is unavailable for long stops the run itself.
                if !Task.isCancelled { _ = try? await lease.renew(by: clock) }
            }
        }
        let outcome = await Result(of: body)
        extending.cancel()
        await extending.value
        await held.release(at: clock.monotonicTime)
        return try outcome.get()
    }

    /// Waits for the lease of a run that was interrupted, which expires by then.
    private static func acquire(
        _ name: String, in leases: any LeaseStoring, by clock: Clock
    ) async throws(StoreError) -> HeldLease? {
        var lease = try HeldLease(name, in: leases, at: clock.unixMilliseconds)
        let start = clock.monotonicTime
        while clock.monotonicTime.since(start) < Self.leaseTime {
            if try await lease.renew(by: clock) { return lease }
            try? await Task.sleep(for: .seconds(1))
        }
        return try await lease.renew(by: clock) ? lease : nil
    }

    /// What a run works on.
    private struct Stage {
        let store: IdentityTransferStore
        let provider: String
        let transferring: any Transferring
        let team: String
        let clock: Clock
    }

    private func exportedUsers() throws(StartError) -> [RecordedTransfer] {
        guard case .importUsers(let file?) = action else { return [] }
        do throws(ArgumentFileError) {
            return try TransferFile.parse(
                try ArgumentFile.read(file, "the file", limit: TransferFile.maximumBytes))
        } catch {
            throw StartError(code: "apple.bad_file", message: error.message, exit: .usage)
        }
    }

    /// The provider of kind `apple`, which has a key.
    private func chosen(
        _ providers: [ProviderHandle]
    ) throws(StartError) -> (ProviderHandle, any Transferring, team: String) {
        let all = providers.filter { $0.kind == Self.kind && (provider == nil || $0.name == provider) }
        guard all.count < 2 else {
            let names = all.map(\.name).sorted().joined(separator: ", ")
            throw StartError(
                code: "apple.ambiguous_provider", message: "--provider must name one of \(names)", exit: .usage)
        }
        guard let handle = all.first, let transferring = handle.transferring else {
            throw StartError(
                code: "apple.no_provider",
                message: provider.map { "no provider of kind apple has the name '\($0)'" }
                    ?? "the configuration has no provider of kind apple",
                exit: .configuration)
        }
        guard let team = transferring.team else {
            throw StartError(
                code: "apple.no_key",
                message: "provider '\(handle.name)' has no key: team_id, key_id and private_key_file",
                exit: .configuration)
        }
        return (handle, transferring, team)
    }

    private func perform(
        _ stage: Stage, _ exported: [RecordedTransfer]
    ) async throws(AccountError) -> ExitCode {
        let output = MigrationOutput(isExport: action.isExport, isTrial: isTrial, asJSON: asJSON)
        let run = TransferRun(
            TransferRun.Surroundings(
                provider: stage.provider, transferring: stage.transferring, store: stage.store, clock: stage.clock),
            report: { output.report($0) }, progress: { output.note($0, at: stage.clock.monotonicTime) })
        let summary: TransferSummary
        switch action {
        case .export(let target, _):
            summary = try await run.export(from: stage.team, to: target, isTrial: isTrial)
        case .importUsers:
            for user in exported { try await run.adopt(user, by: stage.team, isTrial: isTrial) }
            summary = try await run.importUsers(to: stage.team, isTrial: isTrial)
        }
        if case .export(let target, let path?) = action, !isTrial {
            if let reason = try await write(stage, target, to: path) {
                output.finish(summary, toError: path == "-")
                Output.error("martlet apple: cannot write '\(path)': \(reason)\n")
                return .internalFault
            }
            output.finish(summary, toError: path == "-")
        } else {
            output.finish(summary, toError: false)
        }
        return summary.stop != nil ? .unavailable : summary.failed > 0 ? .rejected : .ok
    }

    /// Writes everything that was exported to a team, also by earlier runs.
    /// - Returns: why it could not be written; `nil` on success.
    private func write(_ stage: Stage, _ target: String, to path: String) async throws(AccountError) -> String? {
        var (last, bytes): (String, [UInt8]) = ("", [])
        while true {
            let page = try await stage.store.transferableIdentities(
                of: stage.provider, to: target, after: last, limit: Self.pageSize)
            guard let end = page.last else { break }
            last = end.id
            for recorded in page.compactMap(\.recorded) {
                let line = TransferFile.line(recorded)
                if path == "-" {
                    Output.line(String(decoding: line, as: UTF8.self))
                } else {
                    bytes += line + [UInt8(ascii: "\n")]
                }
            }
        }
        return path == "-" ? nil : TransferFile.write(bytes, to: path)
    }

    static let grammar = CommandGrammar("apple", "Move the users of Sign in with Apple to another team") { grammar in
        let shared: [CommandOption] = [
            .flag("dry-run", "only count; Apple is only asked whether the key is accepted"),
            .flag("json", "print one JSON document"), .config,
            .value("provider", "NAME", .text, "the provider, if several are of kind apple"),
        ]
        let migrate = CommandGrammar("migrate", "Move users to another developer team") { migrate in
            migrate.details = """
                Moves the users of Sign in with Apple to another developer team. export is run with the key of the old team
                and stores a transfer identifier for each user; import is run with the key of the new team and stores the
                user's new identifier. Accounts keep their subjects, claims and sessions. Repeat a run that was interrupted:
                it goes on where it was.
                """
            migrate.subcommands = [
                CommandGrammar("export", "With the old team's key: store a transfer identifier for each user") {
                    export in
                    export.options =
                        [
                            .value("to", "TEAMID", .text, "the team that gets the app").required,
                            .value(
                                "output", "FILE", .file,
                                "also write all users that were exported to this team, for an import into another account "
                                    + "store; - for standard output"),
                        ] + shared
                },
                CommandGrammar("import", "With the new team's key: store each user's new identifier") { imports in
                    imports.arguments = [
                        .optional("FILE", .file, "import users whom such a file lists, too; - for standard input")
                    ]
                    imports.options = shared
                    imports.example("martlet apple migrate import users.jsonl", "after the app was transferred")
                },
            ]
        }
        grammar.subcommands = [migrate]
        grammar.example("martlet apple migrate export --to A1B2C3D4E5 --dry-run", "how many users there are to move")
        grammar.exits = [
            .ok: "done", .rejected: "some users failed",
            .unavailable: "Apple or the account store is unavailable or refuses, run it again",
            .internalFault: "the file cannot be written",
            .configuration: "the configuration has errors, no accounts: or no key",
        ]
    }
}

/// What a migration prints: users who failed and progress to standard error, the result to standard output.
final class MigrationOutput: Sendable {
    /// Failures that the JSON document lists; all are printed to standard error.
    private static let listedFailures = 1000
    private static let interval = Duration.seconds(10)

    private struct State {
        var failures: [TransferFailure] = []
        var lastNote: MonotonicTime?
    }

    private let isExport: Bool
    private let isTrial: Bool
    private let asJSON: Bool
    private let state = Lock(State())

    init(isExport: Bool, isTrial: Bool, asJSON: Bool) {
        self.isExport = isExport
        self.isTrial = isTrial
        self.asJSON = asJSON
    }

    func report(_ failure: TransferFailure) {
        let account = failure.account.map { " (\($0))" } ?? ""
        Output.error(TerminalText.escaped("failed: \(failure.subject)\(account): \(failure.reason)") + "\n")
        guard asJSON else { return }
        state.withLock { state in
            if state.failures.count < Self.listedFailures { state.failures.append(failure) }
        }
    }

    /// Prints the progress of a run that takes long.
    func note(_ summary: TransferSummary, at now: MonotonicTime) {
        let isDue = state.withLock { state in
            guard let last = state.lastNote else {
                state.lastNote = now
                return false
            }
            guard now.since(last) >= Self.interval else { return false }
            state.lastNote = now
            return true
        }
        if isDue { Output.error("… \(text(summary))\n") }
    }

    func finish(_ summary: TransferSummary, toError: Bool) {
        if asJSON {
            Output.line(String(decoding: JSON.write(document(summary)), as: UTF8.self))
        } else if toError {
            Output.error(text(summary) + "\n")
        } else {
            Output.line(text(summary))
        }
        if let reason = summary.stop {
            Output.error("martlet apple: stopped [\(reason)]; the same command goes on where it was\n")
        }
    }

    func text(_ summary: TransferSummary) -> String {
        let verb = isExport ? "exported" : "imported"
        return "\(summary.done) \(isTrial ? "would be " : "")\(verb), \(summary.already) already, "
            + "\(summary.failed) failed"
    }

    private func document(_ summary: TransferSummary) -> JSONObject {
        let failures = state.withLock { $0.failures }
        return [
            isExport ? "exported" : "imported": .integer(Int64(summary.done)),
            "already": .integer(Int64(summary.already)), "failed": .integer(Int64(summary.failed)),
            "dry_run": .bool(isTrial), "stopped": summary.stop.map { .string($0.rawValue) } ?? .null,
            "failures": .array(
                failures.map { failure in
                    .object([
                        "sub": .string(failure.subject),
                        "subject": failure.account.map { .string($0) } ?? .null,
                        "reason": .string(failure.reason.rawValue),
                    ])
                }),
        ]
    }
}
