internal import MartletCore
internal import MartletJSON
internal import MartletServer

/// `martlet status`: what a running gateway does, and what is wrong with it.
struct StatusCommand: Command {
    private let admin: AdminAddress

    init(_ options: Options, _ program: Program) { admin = AdminAddress(options, program.registry) }

    func run() throws(StartError) -> ExitCode {
        let gateway = try admin.requests()
        guard let status = try gateway.shown("/status", with: "version") else { return .ok }
        Output.line(Self.summary(status))
        for check in status["checks"]?.array ?? [] { Self.show(check.object ?? [:]) }
        for certificate in status["certificates"]?.array ?? [] { Self.show(certificate: certificate.object ?? [:]) }
        func list(_ name: String) throws(StartError) -> [JSONValue] {
            try gateway.document("/\(name)", with: name)[name]?.array ?? []
        }
        let upstreams = try list("upstreams")
        for line in Self.unusable(upstreams, .output) { Output.line(line) }
        table(try list("routes"), "ROUTE", "TARGET")
        table(upstreams, "UPSTREAM", "STATE")
        table(try list("providers"), "PROVIDER", "STATE")
        return .ok
    }

    // MARK: Text

    private static func text(_ object: JSONObject, _ name: String) -> String {
        TerminalText.escaped(object[name]?.string ?? "")
    }

    private static func summary(_ status: JSONObject) -> String {
        let state = text(status, "state")
        let style: Terminal.Style = state == "ready" ? .green : state == "degraded" ? .yellow : .red
        let instance = text(status, "instance")
        let configuration = status["configuration"]?.object ?? [:]
        let isCurrent = configuration["current"]?.bool ?? true
        let words = [
            "martlet \(text(status, "version"))", instance.isEmpty ? "" : "instance \(instance)",
            Terminal.output.styled(state, style, .bold),
            "up \(duration(status["uptime_seconds"]?.int64 ?? 0))",
            "configuration of \(text(configuration, "loaded_at"))"
                + (isCurrent ? "" : Terminal.output.styled(", the last reload failed", .red)),
        ]
        return words.filter { !$0.isEmpty }.joined(separator: "  ")
    }

    /// A dependency that is not well.
    private static func show(_ check: JSONObject) {
        let state = text(check, "state")
        guard state != "ready", state != "connected" else { return }
        let detail = text(check, "detail")
        Output.line(
            "  \(text(check, "name")) \(Terminal.output.styled(state, .yellow))" + (detail.isEmpty ? "" : ": \(detail)")
        )
    }

    /// A line for each upstream without an endpoint that gets requests, or with none that is healthy.
    static func unusable(_ upstreams: [JSONValue], _ terminal: Terminal) -> [String] {
        upstreams.compactMap { upstream in
            guard let upstream = upstream.object else { return nil }
            let states = (upstream["endpoints"]?.array ?? []).compactMap { $0.object?["state"]?.string }
            let used = ["healthy", "slow_start"]
            guard !states.isEmpty, !states.contains(where: used.contains) else { return nil }
            let counts = Dictionary(grouping: states, by: \.self).sorted { $0.key < $1.key }
            let list = counts.map { "\($0.value.count) \(TerminalText.escaped($0.key))" }.joined(separator: ", ")
            let isPanicking = upstream["panic"]?.bool == true
            let state =
                isPanicking
                ? terminal.styled("has no healthy endpoint and uses all", .yellow)
                : terminal.styled("has no endpoint in use", .red)
            return "  upstream \(text(upstream, "name")) \(state): \(list)"
        }
    }

    /// A certificate that expires soon, or has.
    private static func show(certificate: JSONObject) {
        let days = certificate["days_left"]?.int64 ?? 0
        guard days < 14 else { return }
        let left = days < 0 ? "has expired" : "expires in \(days) days"
        Output.line("  certificate \(text(certificate, "file")) \(Terminal.output.styled(left, .red))")
    }

    static func duration(_ seconds: Int64) -> String {
        switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3600: "\(seconds / 60) min \(seconds % 60) s"
        case ..<86_400: "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }

    /// The counters of the last minute of a list; its second column is the state, or the target of a route.
    private func table(_ rows: [JSONValue], _ head: String, _ second: String) {
        guard !rows.isEmpty else { return }
        Output.line("")
        var table = TablePrinter(head, second, "RATE", "ERRORS", "P50", "P99")
        for row in rows {
            let row = row.object ?? [:]
            let last = row["last"]?.object?["1m"]?.object ?? [:]
            let columns = [
                Self.text(row, "name"), Self.state(row), Self.number(last["rate"], "/s"),
                Self.number(last["errors"], ""), Self.number(last["p50_ms"], " ms"), Self.number(last["p99_ms"], " ms"),
            ]
            table.add(columns.joined(separator: "\t"))
        }
        table.finish()
    }

    /// The state of a provider, or the worst of an upstream's endpoints.
    private static func state(_ row: JSONObject) -> String {
        if let endpoints = row["endpoints"]?.array {
            let states = endpoints.compactMap { $0.object?["state"]?.string }
            let healthy = states.count { $0 == "healthy" }
            return healthy == states.count ? "healthy" : "\(healthy) of \(states.count) healthy"
        }
        return text(row, row["state"] == nil ? "target" : "state")
    }

    private static func number(_ value: JSONValue?, _ unit: String) -> String {
        guard case .number(let number)? = value else { return "-" }
        return "\(number.text)\(unit)"
    }

    static let grammar = CommandGrammar("status", "Show the state of the running gateway") { grammar in
        grammar.details = """
            Shows the state of the running gateway, what is wrong with it, and the requests of the last minute by route,
            upstream and provider, through its admin listener.
            """
        grammar.options = [.flag("json", "print the document of GET /status")]
        grammar.addAdminOptions()
        grammar.example("martlet status", "what is wrong, and what is slow")
        grammar.example("martlet status --admin https://gw1.internal:9901 --json", "the same of another machine")
        grammar.exits = [
            .ok: "shown", .unavailable: "no gateway is running, or it rejects the request",
            .configuration: AdminAddress.configurationExit,
        ]
    }
}
