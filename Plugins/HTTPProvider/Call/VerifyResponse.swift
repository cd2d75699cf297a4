internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// What the service says of a credential.
enum VerifyResponse {
    /// The credential is valid.
    struct Active {
        let subject: String
        /// `nil` if the service names none.
        let issuer: String?
        let claims: JSONObject
        /// `nil` if the service does not know.
        let expiresAt: UnixTime?
        let authTime: UnixTime?
        let reuse: Reuse
    }

    /// For how long, and for which requests, a response may be reused.
    struct Reuse: Equatable {
        var seconds: Int64 = 0
        /// The parts that the service decided by, if it says so.
        var parts: Set<RequestPart> = []
    }

    case active(Active)
    /// Not valid.
    /// - Parameter code: the service's own reason, for the log.
    case inactive(code: String?, Reuse)
    /// The caller is known, but not allowed.
    case denied
    /// The service cannot read what the client sent.
    /// - Parameter errors: what is wrong with the members of a login's body, if the service says it.
    case unreadable([BodyError])
}

extension VerifyResponse {
    /// The response is not one of this protocol; nothing follows from it.
    struct Malformed: Error, Equatable {
        /// What is wrong with it, for operators.
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// The longest response in bytes.
    static let maximumBytes = 256 * 1024
    /// How far ahead the service's clock may be, in seconds.
    private static let clockSkew: Int64 = 60
    private static let limits = JSONLimits(maximumDepth: 16, maximumBytes: maximumBytes)

    /// Reads a response.
    init(_ response: HTTPCallResponse, at now: UnixTime) throws(Malformed) {
        switch response.status {
        case 200: try self.init(body: response.body, at: now)
        case 401: self = .inactive(code: nil, Reuse())
        case 403: self = .denied
        case 400, 422: self = .unreadable(Self.errors(in: response.body))
        default: throw Malformed("status \(response.status)")
        }
    }

    /// `{ "errors": [{ "pointer": "/code", "code": "missing", "detail": "The code is missing." }] }`; what has another
    /// form is left out.
    private static func errors(in body: [UInt8]) -> [BodyError] {
        let errors = (try? JSON.parse(body, limits: limits))?.object?["errors"]?.array ?? []
        return errors.prefix(maximumErrors).compactMap { error in
            guard let error = error.object, let pointer = error["pointer"]?.string, pointer.utf8.count <= 128,
                pointer.isEmpty || pointer.utf8.first == UInt8(ascii: "/")
            else { return nil }
            let path = pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map {
                String($0.replacing("~1", with: "/").replacing("~0", with: "~"))
            }
            let detail = error["detail"]?.string.flatMap { text in
                text.utf8.count <= 256 && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) } ? text : nil
            }
            return BodyError(
                path, error["code"]?.string.flatMap(BodyError.Code.init(rawValue:)) ?? .invalid, detail: detail)
        }
    }

    private static let maximumErrors = 16

    private init(body: [UInt8], at now: UnixTime) throws(Malformed) {
        let value: JSONValue
        do throws(JSONError) { value = try JSON.parse(body, limits: Self.limits) } catch {
            throw Malformed("no JSON")
        }
        guard let response = value.object else { throw Malformed("no JSON object") }
        guard let isActive = response["active"]?.bool else { throw Malformed("active is missing or no boolean") }
        let reuse = try Self.reuse(response)
        guard isActive else {
            self = .inactive(code: try Self.text("code", of: response, maximumBytes: 64), reuse)
            return
        }
        guard let subject = try Self.text("subject", of: response, maximumBytes: 255) else {
            throw Malformed("subject is missing")
        }
        let authTime = try Self.time("auth_time", of: response)
        guard authTime ?? now <= now.advanced(bySeconds: Self.clockSkew) else {
            throw Malformed("auth_time is in the future")
        }
        self = .active(
            Active(
                subject: subject, issuer: try Self.text("issuer", of: response, maximumBytes: 255),
                claims: try Self.claims(of: response), expiresAt: try Self.time("expires_at", of: response),
                authTime: authTime, reuse: reuse))
    }

    /// A member that is a text of printable characters; `nil` if it is absent or null.
    private static func text(
        _ name: String, of response: JSONObject, maximumBytes: Int
    ) throws(Malformed) -> String? {
        guard let value = member(name, of: response) else { return nil }
        guard let text = value.string, (1...maximumBytes).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { throw Malformed("\(name) is no text of 1 to \(maximumBytes) bytes") }
        return text
    }

    /// Seconds since 1970, or an instant as RFC 3339 writes it.
    private static func time(_ name: String, of response: JSONObject) throws(Malformed) -> UnixTime? {
        guard let value = member(name, of: response) else { return nil }
        if let text = value.string, let time = UnixTime(rfc3339: text) { return time }
        guard let seconds = value.int64, seconds >= 0, seconds <= 253_402_300_799 else {
            throw Malformed("\(name) is neither seconds since 1970 nor an instant such as 2026-12-24T18:00:00Z")
        }
        return UnixTime(seconds: seconds)
    }

    private static func claims(of response: JSONObject) throws(Malformed) -> JSONObject {
        guard let value = member("claims", of: response) else { return [:] }
        guard let claims = value.object else { throw Malformed("claims is no object") }
        return claims
    }

    private static func reuse(_ response: JSONObject) throws(Malformed) -> Reuse {
        var reuse = Reuse()
        if let value = member("cache_for", of: response) {
            guard let seconds = value.double, seconds.isFinite, seconds >= 0 else {
                throw Malformed("cache_for is no number of seconds")
            }
            reuse.seconds = Int64(min(seconds, 86_400))
        }
        guard let value = member("cache_key", of: response) else { return reuse }
        guard let names = value.array else { throw Malformed("cache_key is no list") }
        for name in names {
            guard let part = name.string.flatMap(RequestPart.init) else {
                throw Malformed("cache_key has something other than method, host and path")
            }
            reuse.parts.insert(part)
        }
        return reuse
    }

    private static func member(_ name: String, of response: JSONObject) -> JSONValue? {
        guard let value = response[name], value != .null else { return nil }
        return value
    }
}
