internal import MartletCore
private import MartletJSON
internal import MartletProvider

/// Calls the issuer for a login; sends nothing twice.
struct IssuerClient: Sendable {
    /// The largest response that is read, in bytes.
    static let maximumBytes = 256 * 1024
    /// With less time left, no call is made.
    private static let minimumTime = Duration.milliseconds(100)

    private var http: any HTTPCalling
    private let clock: Clock
    private let timeout: Duration

    init(_ context: ProviderContext, timeout: Duration) {
        http = context.http
        clock = context.clock
        self.timeout = timeout
    }

    /// Waits for capacity and returns a client that can make its calls immediately, one after the other.
    /// - Throws: `oidc.api_overloaded` when too many calls are in progress.
    func reserved(until deadline: MonotonicTime) async throws(OIDCError) -> IssuerClient {
        let left = deadline.since(clock.monotonicTime)
        var client = self
        do throws(HTTPCallError) {
            // The wait must leave enough time for a call.
            client.http = try await http.reserve(within: max(left - timeout, left / 2))
        } catch {
            throw .unavailable("api_overloaded", "no capacity for a call to the issuer [\(error.code)]")
        }
        return client
    }

    /// Makes one call.
    /// - Throws: `oidc.api_unreachable` when there is no response.
    func send(
        _ content: HTTPCall.Content, to url: String, headers: [(name: String, value: String)],
        until deadline: MonotonicTime
    ) async throws(OIDCError) -> HTTPCallResponse {
        let left = min(timeout, deadline.since(clock.monotonicTime))
        guard left >= Self.minimumTime else { throw .unavailable("api_unreachable", "no time left for a call") }
        do throws(HTTPCallError) {
            return try await http.send(
                HTTPCall(
                    url, content: content, headers: IssuerCall.headers + headers, timeout: left,
                    maximumBytes: Self.maximumBytes, isRepeatable: false))
        } catch {
            throw .unavailable("api_unreachable", "no response from the issuer: \(error.message) [\(error.code)]")
        }
    }
}

/// The issuer's response to a code (RFC 6749 §5, OIDC Core §3.1.3.3), parsed only.
enum TokenResponse {
    struct Granted {
        let accessToken: Secret
        let identityToken: Secret
    }

    case granted(Granted)
    /// 400 or 401 with an error code.
    case refused(IssuerRejection)
    /// 429: too many requests.
    case throttled
    /// Anything else: what the issuer did is unknown.
    case unknown(String)

    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: IssuerClient.maximumBytes)
    private static let maximumAccessTokenBytes = 16 * 1024
    /// It is in no header.
    private static let maximumIdentityTokenBytes = 64 * 1024

    init(_ response: HTTPCallResponse) {
        let object = (try? JSON.parse(response.body, limits: Self.limits))?.object
        switch (response.status, object) {
        case (200, let object?): self = Self.granted(object)
        case (400, let object?), (401, let object?): self = Self.refused(object)
        case (429, _): self = .throttled
        case (let status, _): self = .unknown("token endpoint: status \(status), or no JSON object")
        }
    }

    private static func granted(_ object: JSONObject) -> TokenResponse {
        guard object["token_type"]?.string?.lowercased() == "bearer" else {
            return .unknown("token endpoint: token_type is not Bearer")
        }
        guard let access = token(object["access_token"], maximumAccessTokenBytes),
            let identity = token(object["id_token"], maximumIdentityTokenBytes)
        else {
            return .unknown("token endpoint: no access_token and id_token")
        }
        return .granted(Granted(accessToken: access, identityToken: identity))
    }

    private static func refused(_ object: JSONObject) -> TokenResponse {
        guard let error = object["error"]?.string else { return .unknown("token endpoint: no error code") }
        return .refused(IssuerRejection(error: error, description: object["error_description"]?.string))
    }

    /// A token that can be sent in a header.
    private static func token(_ value: JSONValue?, _ maximumBytes: Int) -> Secret? {
        guard let text = value?.string, (1...maximumBytes).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return Secret(text)
    }
}
