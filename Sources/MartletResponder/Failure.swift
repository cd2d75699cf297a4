package import MartletCore
package import MartletHTTP
package import MartletProvider

/// An error response of the gateway.
///
/// This file alone maps detailed reasons to the status and the coarse code that clients see.
package struct Failure: Error, Sendable {
    /// The kind of `WWW-Authenticate` challenge, if any.
    enum Challenge: Sendable, Equatable {
        case none, missing, invalid, insufficient, unproven
        case stepUp(StepUpRequirement)
    }

    package internal(set) var status: Int
    /// The coarse code, for the client.
    package let code: StaticString
    /// The detailed code, for logs and metrics.
    package let reason: ErrorCode
    var challenge = Challenge.none
    /// Whole seconds, at least 1; 0 leaves the field out.
    package internal(set) var retryAfter = 0
    /// The value of `Allow`.
    package internal(set) var allow: String?
    /// The value of `Location`.
    package var location: String?
    /// The values of `Set-Cookie`.
    package var setCookies: [String] = []
    /// The connection has to be closed.
    package var closes = false
    /// The origin whose pages may read the response (CORS); `nil` where none may.
    var readableBy: String?
    /// Whether the response depends on the origin.
    var variesByOrigin = false
    /// The response names the supported WebSocket version.
    var offersWebSocket = false
    /// The condition of the route that failed, for logs: printable ASCII without quotes and backslashes.
    package var condition: String?
    /// What is invalid in the members of a body.
    package private(set) var bodyErrors: [BodyError] = []

    /// An ambiguous, malformed or oversized head or framing: the connection is closed.
    package static func head(_ failure: HeadError) -> Failure {
        let tooLarge = failure.status == 431 || failure.status == 413 || failure.status == 414
        return Failure(
            status: failure.status, code: tooLarge ? "request_too_large" : "request_invalid", reason: failure.code,
            closes: true)
    }

    package static let bodyTooLarge = Failure(
        status: 413, code: "request_too_large", reason: "request.body_too_large", closes: true)
    package static let upgradeRefused = Failure(
        status: 400, code: "request_invalid", reason: "request.upgrade_not_allowed", closes: true)
    /// An extended CONNECT for a protocol that is not supported (RFC 9220 §3).
    package static let protocolUnknown = Failure(
        status: 501, code: "request_invalid", reason: "request.protocol_unknown")
    /// An upgrade request that violates its protocol.
    package static let upgradeMalformed = Failure(
        status: 400, code: "request_invalid", reason: "request.upgrade_malformed", closes: true)
    /// RFC 6455 §4.4: the response names the supported version.
    package static let webSocketVersion = Failure(
        status: 426, code: "request_invalid", reason: "request.websocket_version", offersWebSocket: true)
    /// The upstream does not support upgrades.
    package static let upgradeNotCarried = Failure(
        status: 502, code: "upstream_unavailable", reason: "upstream.carries_no_upgrades")
    package static let requestTimeout = Failure(
        status: 408, code: "request_invalid", reason: "request.timed_out", closes: true)
    /// The request was still being received when its connection was closed for another one.
    package static let displaced = Failure(
        status: 503, code: "overloaded", reason: "server.connection_displaced", retryAfter: 1, closes: true)
    /// The request was still under way when the time for it after a signal to end was over.
    package static let drainOver = Failure(
        status: 503, code: "overloaded", reason: "server.drain_over", retryAfter: 1, closes: true)
    package static let tooManyConnections = Failure(
        status: 503, code: "overloaded", reason: "server.too_many_connections", retryAfter: 1, closes: true)

    /// The same target on https.
    /// - Parameter query: with its question mark, or empty.
    package static func movedToHTTPS(
        authority: [UInt8], path: [UInt8], query: [UInt8], port: UInt16
    ) -> Failure {
        var location = "https://"
        var host = String(decoding: authority, as: UTF8.self)[...]
        if host.last != "]", let colon = host.lastIndex(of: ":") { host = host[..<colon] }
        location += host
        if port != 443 { location += ":\(port)" }
        location += String(decoding: path + query, as: UTF8.self)
        return Failure(status: 308, code: "https_required", reason: "server.moved_to_https", location: location)
    }

    package static let noRoute = Failure(status: 404, code: "no_route", reason: "router.no_route")
    /// A path without an endpoint.
    package static func noRoute(_ reason: ErrorCode) -> Failure {
        Failure(status: 404, code: "no_route", reason: reason)
    }

    /// The expression of a route exceeded its match limit on this path.
    package static let matchFailed = Failure(status: 404, code: "no_route", reason: "router.match_limit")

    /// The path has a route, but not for this method.
    package static func methodNotAllowed(_ allow: String) -> Failure {
        Failure(status: 405, code: "method_not_allowed", reason: "router.method_not_allowed", allow: allow)
    }

    /// CONNECT and TRACE, which no route can match.
    package static let methodNeverAllowed = methodNotAllowed("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")

    package static let credentialMissing = Failure(
        status: 401, code: "credential_missing", reason: "auth.credential_missing", challenge: .missing)

    /// A credential that is invalid, whatever the reason.
    package static func credentialInvalid(_ reason: ErrorCode) -> Failure {
        Failure(status: 401, code: "credential_invalid", reason: reason, challenge: .invalid)
    }

    /// An authenticated caller who is not allowed.
    package static func notAllowed(_ reason: ErrorCode) -> Failure {
        Failure(status: 403, code: "not_allowed", reason: reason, challenge: .insufficient)
    }

    /// An authenticated caller whose authentication is too old or too weak (RFC 9470).
    package static func stepUp(_ requirement: StepUpRequirement, _ reason: ErrorCode) -> Failure {
        Failure(status: 401, code: "reauthentication_required", reason: reason, challenge: .stepUp(requirement))
    }

    /// The caller cannot be authenticated now.
    package static func authUnavailable(_ reason: ErrorCode, retryAfter: Int = 1) -> Failure {
        Failure(status: 503, code: "auth_unavailable", reason: reason, retryAfter: retryAfter)
    }

    /// A malformed body; the connection stays open.
    package static func malformed(_ reason: ErrorCode, _ errors: [BodyError] = []) -> Failure {
        var failure = Failure(status: 400, code: "request_invalid", reason: reason)
        failure.bodyErrors = errors
        return failure
    }

    /// A body of an unsupported type.
    package static func unsupportedMediaType(_ reason: ErrorCode, _ errors: [BodyError] = []) -> Failure {
        Failure(status: 415, code: "request_invalid", reason: reason, bodyErrors: errors)
    }

    /// A body that is too long.
    package static func tooLarge(_ reason: ErrorCode) -> Failure {
        Failure(status: 413, code: "request_too_large", reason: reason)
    }

    /// Too many attempts.
    package static func throttled(_ reason: ErrorCode, retryAfter: Int) -> Failure {
        Failure(status: 429, code: "throttled", reason: reason, retryAfter: retryAfter)
    }

    /// An id that is unknown, or not the caller's.
    package static func notFound(_ reason: ErrorCode) -> Failure {
        Failure(status: 404, code: "not_found", reason: reason)
    }

    /// An identity that is bound to another account.
    package static func identityTaken(_ reason: ErrorCode) -> Failure {
        Failure(status: 409, code: "identity_taken", reason: reason)
    }

    /// An account that has an identity of that provider.
    package static func providerAlreadyLinked(_ reason: ErrorCode) -> Failure {
        Failure(status: 409, code: "provider_already_linked", reason: reason)
    }

    /// An identity that an account would be left without.
    package static func lastIdentity(_ reason: ErrorCode) -> Failure {
        Failure(status: 409, code: "last_identity", reason: reason)
    }

    /// An error of a provider.
    package static func authentication(_ error: AuthenticationError) -> Failure {
        let retryAfter = seconds(error.retryAfter ?? .seconds(1))
        return switch error.disposition {
        case .rejected: credentialInvalid(error.code)
        case .unavailable: authUnavailable(error.code, retryAfter: retryAfter)
        case .malformed: malformed(error.code, error.bodyErrors)
        case .denied: notAllowed(error.code)
        case .throttled: Failure(status: 429, code: "throttled", reason: error.code, retryAfter: retryAfter)
        case .notFound: notFound(error.code)
        }
    }

    /// Whole seconds, rounded up, at least 1.
    private static func seconds(_ span: Duration) -> Int {
        Int((min(max(span.wholeNanoseconds, 1), 1 << 60) + 999_999_999) / 1_000_000_000)
    }

    /// The same failure, readable by pages of `origin` (CORS).
    package func readable(by origin: String?) -> Failure {
        var copy = self
        copy.readableBy = origin
        copy.variesByOrigin = true
        return copy
    }

    /// An upstream that is not reachable, or fails without a response.
    package static func upstreamUnavailable(_ reason: ErrorCode) -> Failure {
        Failure(status: 502, code: "upstream_unavailable", reason: reason)
    }

    /// An upstream that does not respond in time.
    package static func upstreamTimeout(_ reason: ErrorCode) -> Failure {
        Failure(status: 504, code: "upstream_timeout", reason: reason)
    }

    /// A response of an upstream that is malformed, incomplete or not allowed.
    package static func upstreamInvalid(_ reason: ErrorCode) -> Failure {
        Failure(status: 502, code: "upstream_invalid", reason: reason)
    }

    package static let localFailed = Failure(
        status: 503, code: "auth_unavailable", reason: "server.handler_timed_out", retryAfter: 1)
}
