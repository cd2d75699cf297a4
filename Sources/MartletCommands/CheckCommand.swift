internal import MartletConfig
internal import MartletJSON
internal import MartletProvider
internal import MartletRouter
internal import MartletServer

/// `martlet check`: validates a configuration as `run` does, without I/O, and reports all errors together.
struct CheckCommand {
    /// The output format.
    private enum Format: String { case text, json }

    private let path: String
    private let isOnline: Bool
    private let isStrict: Bool
    private let format: Format
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` for an unknown format.
    init(_ options: Options, _ registry: ProviderRegistry) throws(Options.UsageError) {
        path = options["config"] ?? "config.yaml"
        isOnline = options.has("online")
        isStrict = options.has("strict")
        guard let format = Format(rawValue: options["format"] ?? "text") else {
            throw Options.UsageError(message: "--format must be text or json")
        }
        self.format = format
        self.registry = registry
    }

    func run() async -> ExitCode {
        let (blueprint, diagnostics) = Blueprint.read(
            path, registry: registry, environment: SystemInformation.environment)
        if format == .text { reportConfiguration(blueprint, diagnostics) }
        var findings: [OnlineFinding] = []
        if isOnline, let blueprint { findings = await OnlineCheck(blueprint).run(report) }
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
        Output.report(diagnostics)
        guard let blueprint else { return }
        let name = TerminalText.escaped(path)
        if isStrict, !diagnostics.warnings.isEmpty {
            return Output.error("\(name): \(diagnostics.warnings.count) warnings; --strict treats warnings as errors\n")
        }
        Output.line("\(name): ok, \(blueprint.routes.configured.count) routes")
        let checks = blueprint.routes.configured.filter(\.servesChecksOnly).map { TerminalText.escaped($0.name) }
        guard !checks.isEmpty else { return }
        let names = checks.joined(separator: ", ")
        Output.line("\(name): note: without an upstream, for checks of another proxy alone: \(names)")
    }

    private func report(_ finding: OnlineFinding) {
        if format == .text { Output.line(TerminalText.escaped(finding.description)) }
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
}
