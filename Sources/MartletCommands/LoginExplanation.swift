internal import MartletCore
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet explain --login PROVIDER --token FILE`: how the provider verifies a token that an app logs in with,
/// whatever routes accept.
///
/// Nothing is used up: neither nonces nor codes are looked at.
struct LoginExplanation {
    private static let timeout = Duration.seconds(30)

    let provider: String
    let token: Secret
    let isJSON: Bool

    func run(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> ExitCode {
        let graph = try Graph.ofCommand(blueprint, services, access: .readOnly)
        defer { graph.store.shutdown() }
        guard let found = graph.providers.first(where: { $0.name.hasSameBytes(as: provider) }),
            let explaining = found.explaining, found.signingIn != nil
        else {
            let names = graph.providers.filter { $0.explaining != nil && $0.signingIn != nil }.map(\.name)
            throw StartError(
                code: "server.no_login",
                message: "no provider '\(TerminalText.escaped(provider))' verifies tokens of logins; "
                    + "there are: \(names.isEmpty ? "none" : names.joined(separator: ", "))", exit: .usage)
        }
        let clock = services.clock
        let context = AuthenticationContext(
            now: clock.unixTime, deadline: clock.monotonicTime + Self.timeout, purpose: .login)
        let credential = Credential(bearer: token.withBytes { $0.map(\.self) })
        let checks = await explaining.explain(credential, in: context)
        let failure = checks.first { $0.failure != nil }?.failure
        Output.line(isJSON ? Self.document(checks, failure) : Self.page(checks, failure))
        return failure == nil ? .ok : .rejected
    }

    private static func page(_ checks: [CheckOutcome], _ failure: ErrorCode?) -> String {
        let width = checks.map(\.check.utf8.count).max() ?? 0
        let lines = checks.map { check in
            let name = check.check + String(repeating: " ", count: max(0, width - check.check.utf8.count))
            let detail = TerminalText.escaped(check.detail)
            return "  \(name)  \(check.failure.map { "failed [\($0)]" } ?? "ok")\(detail.isEmpty ? "" : "  \(detail)")"
        }
        let decision =
            failure.map { "rejected: 401 credential_invalid [\($0)]" } ?? "accepted, as far as the token goes"
        return (["checks"] + lines + ["decision", "  \(decision)"]).joined(separator: "\n")
    }

    private static func document(_ checks: [CheckOutcome], _ failure: ErrorCode?) -> String {
        let list = checks.map { check -> JSONValue in
            [
                "check": .string(check.check), "failure": check.failure.map { .string($0.rawValue) } ?? .null,
                "detail": .string(check.detail),
            ]
        }
        let document: JSONObject = [
            "checks": .array(list), "accepted": .bool(failure == nil),
            "reason": failure.map { .string($0.rawValue) } ?? .null,
        ]
        return String(decoding: JSON.write(document), as: UTF8.self)
    }
}
