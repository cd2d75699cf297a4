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

/// The outcome of a call.
struct VerifyOutcome {
    /// What it says of the service: only an outage keeps others from calling it.
    enum Service { case works, fails, unknown }

    let result: Result<VerifyResponse, AuthenticationError>
    let service: Service
    /// What is wrong with a response that is not usable.
    var malformed: String?
}

extension VerifyOutcome {
    init(_ error: AuthenticationError, _ service: Service) { self.init(result: .failure(error), service: service) }

    /// Whether nothing was said of the credential.
    var isFailure: Bool { if case .failure = result { true } else { false } }
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

    /// Sends a call and reads the response. A result of `unavailable` says nothing of the credential.
    /// - Parameter isRepeatable: whether the service may get it twice where a connection breaks.
    func send(_ body: [UInt8], isRepeatable: Bool, until deadline: MonotonicTime) async -> VerifyOutcome {
        let rest = deadline.since(context.clock.monotonicTime)
        guard rest > .zero else { return VerifyOutcome(.unavailable(.httpTimeout), .unknown) }
        let headers: [(name: String, value: String)]
        do throws(AuthenticationError) { headers = try signature(of: body) } catch {
            return VerifyOutcome(error, .unknown)
        }
        let call = HTTPCall(
            address.url.text, socket: address.socket, content: .body(body, type: "application/json"),
            headers: [("Accept", "application/json")] + headers, timeout: min(timeout, rest),
            maximumBytes: VerifyResponse.maximumBytes, isRepeatable: isRepeatable)
        let response: HTTPCallResponse
        do throws(HTTPCallError) { response = try await context.http.send(call) } catch {
            guard error.code != "fetch.overloaded" else {
                return VerifyOutcome(.unavailable(.httpOverloaded, retryAfter: .seconds(1), cause: error), .unknown)
            }
            let isTimeout = error.code == "fetch.timeout"
            // A call that had to wait until its time was nearly over says nothing of the service.
            let hadTime = call.timeout >= min(timeout, Self.fairTimeout)
            let fails = isTimeout ? hadTime : Self.outages.contains(error.code)
            return VerifyOutcome(
                .unavailable(isTimeout ? .httpTimeout : .httpUnreachable, cause: error), fails ? .fails : .unknown)
        }
        if response.status == 429 || response.status >= 500 {
            return VerifyOutcome(
                .unavailable(.httpUnavailable, retryAfter: response.retryAfter),
                response.status == 429 ? .works : .fails)
        }
        do throws(VerifyResponse.Malformed) {
            return VerifyOutcome(
                result: .success(try VerifyResponse(response, at: context.clock.unixTime)), service: .works)
        } catch {
            return VerifyOutcome(
                result: .failure(.unavailable(.httpBadResponse, cause: error)), service: .works,
                malformed: error.reason)
        }
    }

    /// Long enough for a service that works.
    private static let fairTimeout = Duration.seconds(1)
    /// Failures to connect. The others may be caused by what one client sends, or by a full queue.
    private static let outages: Set<ErrorCode> = [
        "fetch.unreachable", "fetch.tls_failed", "fetch.certificate_untrusted",
    ]

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
