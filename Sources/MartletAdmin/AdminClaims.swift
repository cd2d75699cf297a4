internal import MartletAccounts
internal import MartletCore
internal import MartletIdentities
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// `/subjects/{subject}/claims`: GET shows the claims of an account, PATCH changes them by a JSON merge patch.
struct AdminClaims {
    private static let mediaTypes = ["application/merge-patch+json", "application/json"]
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 4 * ClaimRules.maximumBytes)

    private let subject: String
    private let claims: OperatorClaims?

    /// - Parameter claims: `nil` without accounts.
    init(_ subject: String, _ claims: OperatorClaims?) {
        self.subject = subject
        self.claims = claims
    }

    func respond(to request: LocalRequest) async -> LocalResponse {
        guard let operators = claims else { return AdminProblem.notFound.response(request.requestID) }
        do throws(AccountError) {
            if request.method == "PATCH" {
                let changes: JSONObject
                switch Self.changes(in: request) {
                case .success(let object): changes = object
                case .failure(let problem): return problem.response(request.requestID)
                }
                let errors = ClaimRules.errors(in: changes)
                guard errors.isEmpty else { return Self.invalid(errors, request) }
                try await operators.change(subject, by: ClaimPatch(changes))
            }
            guard let claims = try await operators.claims(of: subject) else {
                return AdminProblem.notFound.response(request.requestID)
            }
            return Self.document(of: subject, claims)
        } catch {
            return Self.problem(error, request)
        }
    }

    private static func changes(in request: LocalRequest) -> Result<JSONObject, AdminProblem> {
        let type = request.field("Content-Type")?.lowercased().prefix { $0 != ";" }.filter { $0 != " " }
        guard let type, mediaTypes.contains(type) else {
            return .failure(AdminProblem(status: 415, code: "request_invalid", allow: nil))
        }
        guard request.bodyBytes <= limits.maximumBytes else {
            return .failure(AdminProblem(status: 413, code: "request_too_large", allow: nil))
        }
        guard let object = (try? JSON.parse(request.body, limits: limits))?.object else {
            return .failure(AdminProblem(status: 400, code: "request_invalid", allow: nil))
        }
        return .success(object)
    }

    private static func document(of subject: String, _ claims: AccountClaims) -> LocalResponse {
        var identities = JSONObject()
        for provider in claims.identities.keys.sorted() {
            identities[provider] = claims.identities[provider].map { .object($0) }
        }
        let document: JSONObject = [
            "subject": .string(subject), "claims": .object(claims.account), "identities": .object(identities),
        ]
        return .text(200, "application/json", String(decoding: JSON.write(document), as: UTF8.self) + "\n")
    }

    /// 400 with one entry for each member that cannot be applied.
    private static func invalid(
        _ errors: [(name: String, error: AccountError)], _ request: LocalRequest
    ) -> LocalResponse {
        let entries = errors.map { name, error -> JSONValue in
            ["pointer": .string("/" + pointer(name)), "code": .string("\(error.code)")]
        }
        return AdminProblem(status: 400, code: "request_invalid", allow: nil)
            .response(
                request.requestID,
                with: ["detail": .string(errors[0].error.message), "errors": .array(entries)])
    }

    private static func problem(_ error: AccountError, _ request: LocalRequest) -> LocalResponse {
        switch error.kind {
        case .notFound: AdminProblem.notFound.response(request.requestID)
        case .invalidClaims:
            AdminProblem(status: 400, code: "request_invalid", allow: nil)
                .response(
                    request.requestID,
                    with: [
                        "detail": .string(error.message),
                        "errors": [["pointer": "", "code": .string("\(error.code)")]],
                    ])
        default:
            AdminProblem(status: 503, code: "auth_unavailable", allow: nil)
                .response(request.requestID, with: ["detail": .string(error.message)])
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
