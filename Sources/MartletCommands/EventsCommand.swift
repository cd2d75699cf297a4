internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet events list|resend`: shows what webhooks have not received yet, and sends it again.
struct EventsCommand: Command {
    private enum Action {
        case list(hook: String?, state: OutboxEntry.State?, asJSON: Bool)
        case resend(String)

        var access: StoreAccess {
            switch self {
            case .list: .readOnly
            case .resend: .full
            }
        }
    }

    private static let pageSize = 500

    private let action: Action
    private let command: ConfiguredCommand

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        command = ConfiguredCommand(options, program.registry)
        guard options.words.first == "resend" else {
            let state = options["state"].flatMap(OutboxEntry.State.init)
            action = .list(hook: options["hook"], state: state, asJSON: options.has("json"))
            return
        }
        guard let id = ULID(options.words.dropFirst().first ?? "") else {
            throw Options.UsageError(message: "resend requires the id of an event, as list prints it")
        }
        action = .resend(id.description)
    }

    func run() async throws(StartError) -> ExitCode {
        try await command.run { blueprint, services throws(StartError) in try await run(blueprint, services) }
    }

    private func run(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> ExitCode {
        let missing = StartError(
            code: "events.no_accounts",
            message: "events are kept in accounts:, which the configuration does not have", exit: .configuration)
        return try await CommandStores.withAccounts(blueprint, services, access: action.access, missing: missing) {
            accounts async throws(StartError) in
            do throws(StoreError) {
                return try await perform(accounts, at: services.clock.unixMilliseconds)
            } catch {
                throw StartError(error, exit: .unavailable)
            }
        }
    }

    private func perform(_ outbox: any OutboxStoring, at now: Int64) async throws(StoreError) -> ExitCode {
        switch action {
        case .list(let hook, let state, let asJSON):
            try await list(outbox, to: hook, in: state, asJSON: asJSON)
            return .ok
        case .resend(let id):
            let hooks = try await outbox.resend(id, at: now)
            guard !hooks.isEmpty else {
                throw StoreError(code: .eventsUnknown, message: "no event with this id is waiting or given up")
            }
            Output.line("event \(id) is due for \(hooks.sorted().joined(separator: ", "))")
            return .ok
        }
    }

    private func list(
        _ outbox: any OutboxStoring, to hook: String?, in state: OutboxEntry.State?, asJSON: Bool
    ) async throws(StoreError) {
        var (start, array): (Int64?, JSONArrayPrinter) = (0, JSONArrayPrinter())
        while let position = start {
            let page = try await outbox.entries(to: hook, in: state, from: position, limit: EventsCommand.pageSize)
            for entry in page.entries {
                if asJSON { array.print(EventsCommand.json(entry)) } else { Output.line(EventsCommand.line(entry)) }
            }
            start = page.next
        }
        if asJSON { array.finish() }
    }

    private static func line(_ entry: OutboxEntry) -> String {
        let columns = [
            entry.event.id, entry.event.type.rawValue, entry.event.subject, entry.hook, entry.state.rawValue,
            "attempts=\(entry.attempts)", InternetTime.text(milliseconds: entry.event.time), entry.error,
        ]
        return TerminalText.escaped(columns.joined(separator: " "))
    }

    private static func json(_ entry: OutboxEntry) -> JSONObject {
        [
            "id": .string(entry.event.id), "type": .string(entry.event.type.rawValue),
            "subject": .string(entry.event.subject),
            "time": .string(InternetTime.text(milliseconds: entry.event.time)), "hook": .string(entry.hook),
            "state": .string(entry.state.rawValue), "attempts": .integer(Int64(entry.attempts)),
            "due": .string(InternetTime.text(milliseconds: entry.dueAt)), "error": .string(entry.error),
            "data": .object(entry.event.data),
        ]
    }

    static let grammar = CommandGrammar("events", "Show what webhooks have not received yet; send an event again") {
        grammar in
        grammar.details = """
            Shows the events in the outbox that a webhook has not received, the oldest first, or sends one of them again.
            """
        grammar.subcommands = [
            CommandGrammar("list", "List deliveries that are open or were given up") { list in
                list.options = [
                    .value("hook", "NAME", .text, "only deliveries to this webhook"),
                    .choice(
                        "state", OutboxEntry.State.allCases.map(\.rawValue),
                        "only those that will be attempted (open) or were given up (dead)"),
                    .flag("json", "print a JSON array"), .config,
                ]
            },
            CommandGrammar("resend", "Deliver an event again") { resend in
                resend.arguments = [.one("ID", .text, "the id of an event, as list prints it")]
                resend.options = [.config]
                resend.example("martlet events resend evt_01J8Z4T9Q3V6W2X5Y7A0B1C2D3", "after its webhook was repaired")
            },
        ]
        grammar.example("martlet events list --state dead", "what was given up")
        grammar.exits = [
            .ok: "done", .unavailable: "the account store is unavailable or does not have the event",
            .configuration: "the configuration has errors or no accounts:",
        ]
    }
}
