internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletRouter
internal import MartletServer

/// `martlet check`: validates a configuration as `run` does, without I/O, and reports all errors together.
struct CheckCommand: Command {
    private enum Format: String { case text, json }

    private let path: String
    private let isOnline: Bool
    private let isStrict: Bool
    private let format: Format
    private let registry: ProviderRegistry

    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        path = try ConfigurationPath.ofArgument(options)
        isOnline = options.has("online")
        isStrict = options.has("strict")
        format = options["format"].flatMap(Format.init) ?? .text
        self.registry = program.registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = ConfigurationText.blueprint(path, registry)
        if format == .text { reportConfiguration(blueprint, diagnostics) }
        var findings: [OnlineFinding] = []
        if isOnline, let blueprint { findings = await OnlineCheck(blueprint: blueprint).run(report) }
        let code = exit(blueprint, diagnostics, findings)
        if format == .json { Output.line(document(blueprint, diagnostics, findings, code)) }
        return code
    }

    private func exit(
        _ blueprint: Blueprint?, _ diagnostics: Diagnostics, _ findings: [OnlineFinding]
    ) -> ExitCode {
        if blueprint == nil || (isStrict && !diagnostics.warnings.isEmpty) { return .configuration }
        return findings.allSatisfy(\.isHealthy) ? .ok : .unavailable
    }

    // MARK: Text

    private func reportConfiguration(_ blueprint: Blueprint?, _ diagnostics: Diagnostics) {
        let printer = DiagnosticPrinter(.error, file: path, text: source)
        for diagnostic in diagnostics.sorted { Output.error(printer.text(diagnostic) + "\n") }
        guard let blueprint else { return }
        let name = TerminalText.escaped(path == "-" ? ConfigurationText.standardInput : path)
        if isStrict, !diagnostics.warnings.isEmpty {
            return Output.error("\(name): \(diagnostics.warnings.count) warnings; --strict treats warnings as errors\n")
        }
        let count = blueprint.routes.configured.count
        Output.line("\(name): \(Terminal.output.styled("ok", .green)), \(count) route\(count == 1 ? "" : "s")")
        let checks = blueprint.routes.configured.filter(\.servesChecksOnly).map { TerminalText.escaped($0.name) }
        if !checks.isEmpty {
            let names = checks.joined(separator: ", ")
            Output.line("\(name): note: without an upstream, for checks of another proxy alone: \(names)")
        }
        for hint in Self.hints(blueprint.configuration.routes) { Output.line("\(name): note: \(hint)") }
    }

    /// What surprises those who know other proxies: there a path means all that begins with it.
    static func hints(_ routes: [RouteConfiguration]) -> [String] {
        let globs = routes.compactMap { route -> (name: String, glob: String)? in
            guard case .glob(let glob) = route.path else { return nil }
            return (route.name.value, glob.value)
        }
        return globs.compactMap { name, glob in
            let wide = glob + "*"
            guard glob.hasSuffix("/*"), !globs.contains(where: { $0.glob == wide }) else { return nil }
            return TerminalText.escaped(
                "route '\(name)': \(glob) is one segment; \(wide) is everything below")
        }
    }

    private func report(_ finding: OnlineFinding) {
        if format == .text { Output.line(TerminalText.escaped(finding.description)) }
    }

    private var source: String {
        guard Terminal.error.isTerminal, path != "-" else { return "" }
        let text = try? ArgumentFile.readWhole(path, "the configuration", limit: ConfigurationText.limit)
        return String(decoding: text ?? [], as: UTF8.self)
    }

    // MARK: JSON

    private func document(
        _ blueprint: Blueprint?, _ diagnostics: Diagnostics, _ findings: [OnlineFinding], _ code: ExitCode
    ) -> String {
        var members: [(String, JSONValue)] = [
            ("file", .string(path)), ("ok", .bool(code == .ok)), ("exit", .integer(Int64(code.rawValue))),
            ("errors", .integer(Int64(diagnostics.errors.count))),
            ("warnings", .integer(Int64(diagnostics.warnings.count))),
            ("routes", blueprint.map { .integer(Int64($0.routes.configured.count)) } ?? .null),
            ("diagnostics", .array(diagnostics.sorted.map(Self.value))),
        ]
        if isOnline, blueprint != nil { members.append(("online", .array(findings.map(Self.value)))) }
        return String(decoding: JSON.write(JSONObject(members)), as: UTF8.self)
    }

    private static func value(_ diagnostic: Diagnostic) -> JSONValue {
        [
            "severity": .string(diagnostic.severity.rawValue), "code": .string("\(diagnostic.code)"),
            "file": .string(diagnostic.location.file), "line": .integer(Int64(diagnostic.location.line)),
            "column": .integer(Int64(diagnostic.location.column)), "message": .string(diagnostic.text),
        ]
    }

    private static func value(_ finding: OnlineFinding) -> JSONValue {
        [
            "subject": .string(finding.subject), "ok": .bool(finding.isHealthy),
            "code": finding.failure.map { .string("\($0)") } ?? .null, "detail": .string(finding.detail),
        ]
    }

    static let grammar = CommandGrammar("check", "Report all errors and warnings of a configuration") { grammar in
        grammar.details = "Reports all errors and warnings of a configuration, without starting anything."
        grammar.arguments = [ConfigurationPath.argument]
        grammar.options = [
            .config,
            .flag(
                "online",
                "also check the dependencies: every Redis permission that is needed, the account store, issuers' keys, the "
                    + "providers' APIs and the upstreams"),
            .flag("strict", "treat warnings as errors"),
            .choice(
                "format", ["text", "json"],
                "text (default): file:line:column: error: text [code]; json: one document on standard output"),
        ]
        grammar.example("martlet check new.yaml", "a file before it is put where the gateway reads it")
        grammar.example("martlet check --strict", "for a pipeline: warnings fail, too")
        grammar.example("martlet check --online --config /etc/martlet/config.yaml", "asks every dependency")
        grammar.exits = [
            .ok: "valid", .unavailable: "a dependency is unavailable",
            .configuration: "an error, or with --strict a warning",
        ]
    }
}
