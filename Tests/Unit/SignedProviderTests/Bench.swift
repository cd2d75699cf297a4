import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting

@testable import SignedProvider

/// Providers and signed requests for tests.
enum Bench {
    static let secret = [UInt8](repeating: 7, count: 32)
    static let now = UnixTime(seconds: 1_800_000_000)
    static var clock: Clock {
        Clock(unixTime: { now }, monotonicTime: { MonotonicTime(nanoseconds: 1_000_000_000) })
    }

    static let block = """
        keys:
          acme: { algorithm: hmac-sha256, secret: \(Base64.encode(secret, padding: .required)), subject: acme, claims: { tier: gold } }
        """

    static func configuration(_ yaml: String) -> (SignedConfiguration?, Diagnostics) {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(yaml.utf8), file: "c.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = node?.decode(SignedConfiguration.self, title: "provider 'partner'", into: &diagnostics)
        return (configuration, diagnostics)
    }

    static func provider(_ yaml: String = block, store: (any SharedStoring)? = nil) throws -> SignedProvider {
        let (configuration, diagnostics) = configuration(yaml)
        guard let configuration else { throw TestFailure("\(diagnostics)") }
        return try SignedProvider(
            configuration,
            context: .detached("partner", services: .detached(clock: clock, hasUsers: false, store: store)))
    }

    /// A request as the gateway describes it.
    struct Request {
        var method = "POST"
        var scheme = "https"
        var authority = "api.example.com"
        var path = "/orders"
        var query: String? = "a=1"
        var fields: [(String, String)] = []
        var hasBody = false
        var id: [UInt8] = []

        func context(at now: UnixTime = Bench.now) -> AuthenticationContext {
            AuthenticationContext(
                now: now, deadline: MonotonicTime(nanoseconds: 10_000_000_000),
                request: RequestFacts(
                    method: method, host: authority, path: path,
                    head: ReceivedHead(
                        method: method, scheme: scheme, authority: authority, path: path, query: query,
                        fields: fields.map { .init(name: $0, value: Array($1.utf8)) }, hasBody: hasBody)),
                requestID: id)
        }

        /// The value of `Signature-Input`.
        var credential: Credential {
            Credential(header: Array((fields.first { $0.0 == "signature-input" }?.1 ?? "").utf8))
        }
    }

    static let created = "created=1800000000"
    static let parameters = #";created=1800000000;keyid="acme""#

    /// A request that is signed as a client would, with the components of the default policy and more.
    /// - Parameters:
    ///   - more: names and values of covered fields.
    ///   - parameters: after the list of components.
    static func signed(
        _ request: Request = Request(), more: [(String, String)] = [], parameters: String = Bench.parameters,
        key: [UInt8] = secret
    ) -> Request {
        var request = request
        var lines = [
            ("@method", request.method), ("@authority", request.authority), ("@path", request.path),
            ("@query", "?\(request.query ?? "")"),
        ]
        for (name, value) in more {
            request.fields.append((name, value))
            lines.append((name, value))
        }
        let list = "(" + lines.map { "\"\($0.0)\"" }.joined(separator: " ") + ")" + parameters
        let base = lines.map { "\"\($0.0)\": \($0.1)\n" }.joined() + "\"@signature-params\": \(list)"
        let code = HMACSHA256.authenticate(Array(base.utf8), key: Secret(key))
        request.fields.append(("signature-input", "sig=\(list)"))
        request.fields.append(("signature", "sig=:\(Base64.encode(code, padding: .required)):"))
        return request
    }

    /// `subject` or the error's code, with its disposition.
    static func outcome(
        of request: Request, by provider: SignedProvider, at now: UnixTime = Bench.now
    ) async -> String {
        do throws(AuthenticationError) {
            return try await provider.authenticate(request.credential, in: request.context(at: now)).providerSubject
        } catch {
            return "\(error.code) \(error.disposition)"
        }
    }
}
