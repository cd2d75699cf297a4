internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider
internal import MartletServer
internal import MartletSession
internal import MartletSignIn

/// `martlet session list|end`: shows and ends the sessions of one subject.
struct SessionCommand {
    private enum Action: String, CaseIterable {
        case list, end
    }

    /// The reason of events.
    private static let reason = "admin"

    private let action: Action
    private let subject: String
    private let id: String?
    private let asJSON: Bool
    private let configurationPath: String
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` unless there is an action and a subject.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        guard let word = options.words.first, let action = Action(rawValue: word) else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: Action.allCases.map(\.rawValue))
            throw Options.UsageError(message: "expected one of list, end\(hint)")
        }
        guard let subject = options["subject"], !subject.isEmpty else {
            throw Options.UsageError(message: "--subject is required")
        }
        guard options["id"] == nil || action == .end else {
            throw Options.UsageError(message: "--id is for end alone")
        }
        self.action = action
        self.subject = subject
        id = options["id"]
        asJSON = options.has("json")
        configurationPath = options["config"] ?? "config.yaml"
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = Blueprint.read(
            configurationPath, registry: registry, environment: SystemInformation.environment)
        Output.report(diagnostics)
        guard let blueprint else { return .configuration }
        do throws(StartError) {
            let services = try Services(sink: LogSink.standardError(), level: .error)
            defer { services.shutdown() }
            guard let store = try await CommandStores.shared(blueprint, services) else {
                throw StartError(
                    code: "session.not_shared",
                    message: "with the store memory: sessions are in the memory of the running gateway",
                    exit: .configuration)
            }
            defer { store.shutdown() }
            try await perform(in: store, blueprint, services)
            return .ok
        } catch {
            Output.error("martlet session \(action): \(error)\n")
            return error.exit
        }
    }

    /// Without the account store the sessions end all the same: that matters more than that it is reported.
    private func perform(
        in store: SharedStore, _ blueprint: Blueprint, _ services: Services
    ) async throws(StartError) {
        let providers = blueprint.providers.map(\.name)
        let silent = SessionEnding(in: store, nil, blueprint, services)
        guard action == .end, blueprint.configuration.accounts != nil,
            !blueprint.subscriptions.hooks(for: .sessionRevoked).isEmpty
        else { return try await perform(silent, providers) }
        var isOpen = false
        let missing = StartError(code: .sessionStoreUnavailable, message: "", exit: .internalFault)
        do throws(StartError) {
            try await CommandStores.withAccounts(blueprint, services, access: .full, missing: missing) {
                accounts async throws(StartError) in
                isOpen = true
                try await perform(SessionEnding(in: store, accounts, blueprint, services), providers)
            }
        } catch {
            guard !isOpen else { throw error }
            Output.error("warning: the account store is unavailable: the end is not reported to webhooks\n")
            try await perform(silent, providers)
        }
    }

    private func perform(_ ending: SessionEnding, _ providers: [String]) async throws(StartError) {
        do throws(SessionError) {
            switch action {
            case .list: show(try await ending.sessions.list(subject: subject))
            case .end: try await end(ending, providers)
            }
        } catch {
            let exit: ExitCode = error.kind == .invalid ? .usage : .unavailable
            let message = error.kind == .invalid ? "the subject has no such session" : "the store is unavailable"
            throw StartError(code: error.code, message: message, exit: exit)
        }
    }

    private func end(_ ending: SessionEnding, _ providers: [String]) async throws(SessionError) {
        guard let id else {
            try await ending.end(SessionsEnd(Self.reason), of: subject, providers: providers)
            return Output.line("all sessions of \(TerminalText.escaped(subject)) ended")
        }
        let isKnown: Bool
        if ending.reporting == nil {
            isKnown = try await ending.sessions.end(SessionReference(subject: subject, id: id))
        } else {
            isKnown = try await ending.sessions.list(subject: subject).contains { $0.id.hasSameBytes(as: id) }
        }
        guard isKnown else { throw SessionError("session.unknown", .invalid) }
        try await ending.end(SessionsEnd(Self.reason, only: id), of: subject, providers: providers)
        Output.line("session \(TerminalText.escaped(id)) ended")
    }

    private func show(_ sessions: [SessionSummary]) {
        var array = JSONArrayPrinter()
        for session in sessions {
            if asJSON { array.print(session.entry) } else { Output.line(SessionCommand.line(session)) }
        }
        if asJSON { array.finish() }
    }

    private static func line(_ session: SessionSummary) -> String {
        let times = [session.createdAt, session.lastSeenAt, session.expiresAt].map {
            InternetTime.text(milliseconds: $0.milliseconds)
        }
        let client = session.client.deviceName ?? session.client.userAgent ?? ""
        let columns = [
            session.id, session.provider, "created \(times[0])", "seen \(times[1])", "until \(times[2])", client,
        ]
        return columns.map(TerminalText.escaped).joined(separator: "\t")
    }
}
