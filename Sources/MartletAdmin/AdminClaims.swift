internal import MartletAccounts
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// `/subjects/{subject}/claims`: GET shows the claims of an account, PATCH changes them by a JSON merge patch.
struct AdminClaims {
    private static let mediaTypes = ["application/merge-patch+json", "application/json"]
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 4 * ClaimRules.maximumBytes)

    let subject: String
    /// `nil` without accounts.
    let claims: OperatorClaims?

    func respond(to request: LocalRequest) async -> LocalResponse {
        do throws(AdminProblem) {
            guard let claims else { throw .notFound }
            let changes = request.method == "PATCH" ? try Self.changes(in: request) : nil
            return try await respond(changes, claims)
        } catch {
            return error.response(request.requestID)
        }
    }

    /// - Parameter changes: what to change before; `nil` for nothing.
    private func respond(
        _ changes: JSONObject?, _ operators: OperatorClaims
    ) async throws(AdminProblem) -> LocalResponse {
        do throws(AccountError) {
            if let changes { try await operators.change(subject, by: ClaimPatch(changes)) }
            if let claims = try await operators.claims(of: subject) { return Self.document(of: subject, claims) }
        } catch {
            throw Self.problem(error)
        }
        throw .notFound
    }

    private static func changes(in request: LocalRequest) throws(AdminProblem) -> JSONObject {
        let type = request.field("Content-Type")?.lowercased().prefix { $0 != ";" }.filter { $0 != " " }
        guard let type, mediaTypes.contains(type) else { throw AdminProblem(status: 415, code: "request_invalid") }
        guard request.bodyBytes <= limits.maximumBytes else {
            throw AdminProblem(status: 413, code: "request_too_large")
        }
        guard let object = (try? JSON.parse(request.body, limits: limits))?.object else {
            throw AdminProblem(status: 400, code: "request_invalid")
        }
        let errors = ClaimRules.errors(in: object)
        guard errors.isEmpty else { throw invalid(errors) }
        return object
    }

    private static func document(of subject: String, _ claims: AccountClaims) -> LocalResponse {
        var identities = JSONObject()
        for provider in claims.identities.keys.sorted() {
            identities[provider] = claims.identities[provider].map { .object($0) }
        }
        return .admin([
            "subject": .string(subject), "claims": .object(claims.account), "identities": .object(identities),
        ])
    }

    /// 400 with one entry for each member that cannot be applied.
    private static func invalid(_ errors: [(name: String, error: AccountError)]) -> AdminProblem {
        var problem = AdminProblem.invalid(errors[0].error.message)
        problem.members["errors"] = .array(
            errors.map { ["pointer": .string("/" + pointer($0.name)), "code": .string("\($0.error.code)")] })
        return problem
    }

    private static func problem(_ error: AccountError) -> AdminProblem {
        switch error.kind {
        case .notFound: return .notFound
        case .invalidClaims:
            var problem = AdminProblem.invalid(error.message)
            problem.members["errors"] = [["pointer": "", "code": .string("\(error.code)")]]
            return problem
        default: return .unavailable(error.message)
        }
    }

    /// A name as a part of a JSON pointer (RFC 6901).
    private static func pointer(_ name: String) -> String {
        var escaped = ""
        for character in name.unicodeScalars {
            switch character {
            case "~": escaped += "~0"
            case "/": escaped += "~1"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
