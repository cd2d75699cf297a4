internal import MartletCore
internal import MartletJSON

/// Apple's response to a request for a migration's access token, parsed only.
enum MigrationTokenResponse: Sendable {
    case granted(Secret, lifetime: Duration)
    case failed(MigrationFailure)

    private static let lifetimes: ClosedRange<Int64> = 1...86_400
    /// As documented; for a response without `expires_in`.
    private static let standardLifetime: Int64 = 3600

    init(_ response: HTTPCallResponse) {
        guard response.status == 200 else {
            self = .failed(MigrationFailure(response))
            return
        }
        guard let object = MigrationFailure.object(response.body), let type = object["token_type"]?.string,
            type.lowercased() == "bearer", let token = object["access_token"]?.string, Self.isToken(token)
        else {
            self = .failed(.unknown("status 200 without an access token"))
            return
        }
        let seconds = object["expires_in"]?.int64 ?? Self.standardLifetime
        self = .granted(
            Secret(token),
            lifetime: .seconds(min(max(seconds, Self.lifetimes.lowerBound), Self.lifetimes.upperBound)))
    }

    /// Whether it can be sent in a header.
    private static func isToken(_ text: String) -> Bool {
        (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }
}

/// Apple's response of `usermigrationinfo`, parsed only.
enum MigrationResponse: Sendable {
    /// The identifier that was asked for.
    case named(String)
    case failed(MigrationFailure)

    private static let maximumNameBytes = 255

    init(_ response: HTTPCallResponse, member: String) {
        guard response.status == 200 else {
            self = .failed(MigrationFailure(response))
            return
        }
        guard let name = MigrationFailure.object(response.body)?[member]?.string,
            (1...Self.maximumNameBytes).contains(name.utf8.count),
            name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else {
            self = .failed(.unknown("status 200 without \(member)"))
            return
        }
        self = .named(name)
    }
}

/// Why there is no access token, or no identifier.
enum MigrationFailure: Sendable {
    /// 400 with an error code.
    case refused(TokenResponse.APIError)
    /// 429, with the pause that it asks for.
    case throttled(Duration?)
    /// Anything else, such as 500 or an HTML page.
    case unknown(String)

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: TokenResponse.maximumBytes)

    init(_ response: HTTPCallResponse) {
        switch TokenResponse(status: response.status, body: response.body) {
        case .refused(let error, _): self = .refused(error)
        case .throttled: self = .throttled(response.retryAfter)
        case .granted: self = .unknown("status \(response.status)")
        case .unknown(let what): self = .unknown(what)
        }
    }

    static func object(_ body: [UInt8]) -> JSONObject? { (try? JSON.parse(body, limits: limits))?.object }
}
