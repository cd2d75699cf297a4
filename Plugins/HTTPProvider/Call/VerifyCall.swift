internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider

/// The body of a call: `{ "credential": { "kind", "value" }, "request": { … }, "provider" }`.
struct VerifyCall {
    /// How the credential came.
    enum Kind: String {
        case bearer, jwt, header, basic
        case signIn = "sign_in"
    }

    let kind: Kind
    private let value: JSONValue

    /// A credential of a request.
    /// - Parameter accepts: what the service verifies.
    /// - Returns: `nil` if it is no text: in JSON it could not be distinguished from others.
    init?(_ credential: Credential, _ accepts: [CredentialSource]) {
        let text = credential.withBytes { String(validating: $0, as: UTF8.self) }
        guard let text else { return nil }
        value = .string(text)
        switch credential.scheme {
        case .basic: kind = .basic
        case .header: kind = .header
        case .bearer, .cookie, .certificate:
            let hasPrefix = accepts.contains { source in
                if case .bearerPrefix(let prefix) = source { text.utf8.starts(with: prefix.utf8) } else { false }
            }
            kind = hasPrefix ? .bearer : .jwt
        }
    }

    /// The members of a login's body.
    init(_ form: SignInForm) {
        kind = .signIn
        value = .object(form.members)
    }

    /// The bytes to send.
    func body(in context: AuthenticationContext, provider: String) -> [UInt8] {
        var request: [(String, JSONValue)] = []
        if let facts = context.request {
            request = [("method", .string(facts.method)), ("host", .string(facts.host)), ("path", .string(facts.path))]
        }
        request.append(("client", context.client.map { .string("\($0)") } ?? .null))
        let body: JSONObject = [
            "credential": ["kind": .string(kind.rawValue), "value": value], "request": .object(JSONObject(request)),
            "provider": .string(provider),
        ]
        return JSON.write(body)
    }
}

/// Sends calls to the service.
struct VerifyClient: Sendable {
    private let address: ServiceAddress
    private let signer: WebhookSigner?
    private let timeout: Duration
    private let context: ProviderContext

    init(_ configuration: HTTPConfiguration, _ context: ProviderContext) {
        address = configuration.address.value
        signer = configuration.signingKey.flatMap { WebhookSigner($0.value) }
        timeout = configuration.timeout
        self.context = context
    }

    /// Sends a call and reads the response.
    /// - Parameter isRepeatable: whether the service may get it twice where a connection breaks.
    /// - Throws: `unavailable`: nothing was said of the credential.
    func send(
        _ body: [UInt8], isRepeatable: Bool, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> VerifyResponse {
        let rest = deadline.since(context.clock.monotonicTime)
        guard rest > .zero else { throw .unavailable(.httpTimeout) }
        let call = HTTPCall(
            address.url.text, socket: address.socket, content: .body(body, type: "application/json"),
            headers: [("Accept", "application/json")] + (try signature(of: body)), timeout: min(timeout, rest),
            maximumBytes: VerifyResponse.maximumBytes, isRepeatable: isRepeatable)
        let response: HTTPCallResponse
        do throws(HTTPCallError) { response = try await context.http.send(call) } catch {
            throw .unavailable(error.code == "fetch.timeout" ? .httpTimeout : .httpUnreachable, cause: error)
        }
        if response.status == 429 || response.status >= 500 {
            throw .unavailable(.httpUnavailable, retryAfter: response.retryAfter)
        }
        do throws(VerifyResponse.Malformed) {
            return try VerifyResponse(response, at: context.clock.unixTime)
        } catch {
            throw .unavailable(.httpBadResponse, cause: error)
        }
    }

    /// The headers of Standard Webhooks, with an id of this call alone.
    private func signature(of body: [UInt8]) throws(AuthenticationError) -> [(name: String, value: String)] {
        guard let signer else { return [] }
        do throws(CryptoError) {
            let id = "msg_\(Base64URL.encode(try RandomBytes.make(18)))"
            return signer.headers(id: id, at: context.clock.unixTime, body: body)
        } catch {
            throw .unavailable(.httpNoRandomness, cause: error)
        }
    }
}
