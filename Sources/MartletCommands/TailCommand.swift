internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// `martlet tail`: the requests of a running gateway as they finish.
struct TailCommand: Command {
    private static let filters = ["route", "subject", "reason"]

    private let admin: AdminAddress
    private let options: Options

    init(_ options: Options, _ program: Program) {
        self.options = options
        admin = AdminAddress(options, program.registry)
    }

    func run() throws(StartError) -> ExitCode {
        let query = Self.filters.compactMap { name in
            options[name].map { "\(name)=\(AdminRequests.escaped($0))" }
        }
        let path = "/events" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
        let client = AdminClient(try admin.target(), timeout: nil)
        let printer = EventPrinter(isJSON: admin.printsJSON)
        let response = try client.request(path) { printer.take($0) }
        guard response.status == 200 else {
            throw StartError(
                code: "server.refused", message: "status \(response.status): the gateway rejects the request",
                exit: .unavailable)
        }
        return .ok
    }

    static let grammar = CommandGrammar("tail", "Show requests of the running gateway as they finish") { grammar in
        grammar.details = """
            Shows the requests of the running gateway as they finish, through its admin listener: at most 100 in a second;
            how many more there were is on standard error. It ends with the gateway, or with Ctrl-C.
            """
        grammar.options = [
            .value("route", "NAME", .text, "only requests of this route"),
            .value(
                "subject", "SUBJECT", .text,
                "only requests of this caller, as upstreams see it or as access lines name it"),
            .value("reason", "CODE", .text, "only requests with this reason, such as auth.credential_expired"),
            .flag("json", "print the events as JSON, one a line"),
        ]
        grammar.addAdminOptions()
        grammar.example("martlet tail --reason policy.claim_missing", "who gets 403, and where")
        grammar.exits = [
            .ok: "the gateway has ended", .unavailable: "no gateway is running, or it rejects the request",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}

/// Prints the events of a stream, one line each.
final class EventPrinter {
    private let isJSON: Bool
    private var pending: [UInt8] = []
    private var event = ""

    init(isJSON: Bool) { self.isJSON = isJSON }

    /// Takes the next bytes of the stream.
    /// - Returns: whether more are wanted: not if they cannot be printed.
    func take(_ bytes: [UInt8]) -> Bool {
        pending += bytes
        while let end = pending.firstIndex(of: 0x0A) {
            line(String(decoding: pending[..<end], as: UTF8.self))
            pending.removeFirst(end + 1)
        }
        return Output.writeError == nil
    }

    private func line(_ line: String) {
        if line.isEmpty { event = "" }
        if line.hasPrefix("event: ") { event = String(line.dropFirst(7)) }
        guard line.hasPrefix("data: ") else { return }
        let data = String(line.dropFirst(6))
        if event == "dropped" {
            let count = Self.object(data)["count"]?.int64 ?? 0
            Output.error("\(count) more requests in this second\n")
        } else {
            Output.line(isJSON ? data : Self.text(Self.object(data)))
        }
    }

    private static func object(_ data: String) -> JSONObject {
        let bytes = Array(data.utf8)
        let limits = JSONLimits(maximumDepth: 4, maximumBytes: max(bytes.count, 1))
        return (try? JSON.parse(bytes, limits: limits))?.object ?? [:]
    }

    /// Time, status, method, path, route, reason, caller, and how long it took.
    static func text(_ event: JSONObject) -> String {
        func text(_ name: String) -> String { TerminalText.escaped(event[name]?.string ?? "") }
        let status = event["status"]?.int64 ?? 0
        let style: Terminal.Style = status >= 500 ? .red : status >= 400 ? .yellow : .green
        let caller = text("subject").isEmpty ? text("client") : text("subject")
        let microseconds = Double(event["duration_us"]?.int64 ?? 0)
        let reason = text("reason") == "ok" ? "" : "  \(text("reason"))"
        return
            "\(text("timestamp"))  \(Terminal.output.styled(String(status), style))  \(text("method")) \(text("path"))"
            + "  \(text("route"))\(reason)  \(caller)  \((microseconds / 100).rounded() / 10) ms  \(text("request_id"))"
    }
}
