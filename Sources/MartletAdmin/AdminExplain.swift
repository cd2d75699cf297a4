package import MartletCore
internal import MartletJSON
internal import MartletResponder

/// A request to be explained.
package struct ExplanationQuestion: Sendable {
    package var method = "GET"
    /// Path and query, as in a request line.
    package var target = ""
    /// `nil` for the address of the first listener, or where it is among ``fields``.
    package var host: String?
    /// `http` or `https`, which decides the listener; `nil` for the first that serves requests.
    package var scheme: String?
    /// Header lines; may hold a credential.
    package var fields: [Secret] = []
}

/// `GET /explain`: what `martlet explain` says, of the running configuration.
struct AdminExplain {
    /// The field whose value is that of `Authorization` of the request to be explained.
    private static let credentialField = "X-Explain-Authorization"

    private let source: any AdminSource

    init(_ source: any AdminSource) { self.source = source }

    func respond(to request: LocalRequest) async -> LocalResponse {
        do throws(AdminProblem) {
            guard let document = await source.explanation(of: try Self.question(request)) else { throw .busy }
            return .admin(.object(document))
        } catch {
            return error.response(request.requestID)
        }
    }

    /// What a request for an explanation needs.
    ///
    /// The result for a password is as good as a login, and is not throttled like one: without the token any client on
    /// this machine could guess passwords.
    static func need(_ request: LocalRequest) -> AdminAccess.Need {
        let hasPassword = credentials(in: request).contains { field in
            field.value.drop { $0 == " " || $0 == "\t" }.lowercased().hasPrefix("basic")
        }
        return hasPassword ? .change : .reading
    }

    private static func credentials(in request: LocalRequest) -> [(name: String, value: String)] {
        request.fields.filter { $0.name.lowercased() == credentialField.lowercased() }
    }

    private static func question(_ request: LocalRequest) throws(AdminProblem) -> ExplanationQuestion {
        var question = ExplanationQuestion()
        var url: String?
        var known: Set<String> = []
        var decoder = FormDecoder(Array(request.query.utf8))
        let pairs: [(name: [UInt8], value: Secret)]
        do { pairs = try decoder.pairs() } catch { throw .invalid("the query is malformed") }
        for (name, value) in pairs {
            let text = value.withBytes { String(decoding: $0, as: UTF8.self) }
            guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw .invalid("a parameter has a control character")
            }
            let name = String(decoding: name, as: UTF8.self)
            guard name == "header" || known.insert(name).inserted else {
                throw .invalid("the parameter '\(name)' is repeated")
            }
            switch name {
            case "path": question.target = text
            case "url": url = text
            case "method": question.method = text
            case "host": question.host = text
            case "header":
                let field = text.prefix { $0 != ":" }.lowercased().filter { $0 != " " && $0 != "\t" }
                if field == "authorization" {
                    throw .invalid("the credential comes in \(credentialField)")
                }
                question.fields.append(value)
            case let other: throw .invalid("unknown parameter '\(other)'")
            }
        }
        if let url {
            guard question.target.isEmpty, question.host == nil, let parsed = RequestURL(url) else {
                throw .invalid("url must be an absolute URL, without path and host beside it")
            }
            (question.target, question.host, question.scheme) = (parsed.target, parsed.host, parsed.scheme)
        }
        guard !question.target.isEmpty else { throw .invalid("path or url is required") }
        guard question.target.hasPrefix("/") else { throw .invalid("path must begin with /") }
        let credentials = credentials(in: request)
        guard credentials.count < 2 else { throw .invalid("\(credentialField) is repeated") }
        if let credential = credentials.first {
            question.fields.append(Secret(Array("Authorization: \(credential.value)".utf8)))
        }
        return question
    }
}

/// The parts of a URL that a request has.
package struct RequestURL {
    /// `http` or `https`.
    package let scheme: String
    /// Host and port, as in the `Host` header.
    package let host: String
    /// Path and query.
    package let target: String

    /// `nil` unless it is an `http` or `https` URL without user information.
    package init?(_ text: String) {
        guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else { return nil }
        let rest = text.dropFirst(scheme.count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.isEmpty, !authority.contains("@") else { return nil }
        self.scheme = String(scheme.dropLast(3))
        host = String(authority)
        let tail = rest.dropFirst(authority.count)
        target = tail.hasPrefix("/") ? String(tail) : "/\(tail)"
    }
}
