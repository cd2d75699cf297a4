import MartletCore
import Testing

@testable import MartletResponder

/// A failure with everything that clients and logs see of it.
struct FailureCase: CustomTestStringConvertible, Sendable {
    let failure: Failure
    let status: Int
    let title: String
    let code: String
    let reason: ErrorCode
    /// Of gRPC.
    let grpcStatus: Int
    /// The lines that not every response has.
    var fields: [String] = []
    var retryAfter = 0
    var closes = false

    var testDescription: String { "\(status) \(reason)" }

    init(
        _ failure: Failure, _ status: Int, _ title: String, _ code: String, _ reason: ErrorCode, grpc: Int,
        fields: [String] = [], retryAfter: Int = 0, closes: Bool = false
    ) {
        self.failure = failure
        self.status = status
        self.title = title
        self.code = code
        self.reason = reason
        grpcStatus = grpc
        self.fields = fields
        self.retryAfter = retryAfter
        self.closes = closes
    }

    private static let bearer = #"WWW-Authenticate: Bearer realm="martlet""#
    private static let invalid = #"\#(bearer), error="invalid_token""#
    private static let insufficient = #"\#(bearer), error="insufficient_scope""#
    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
    private static let upgrade = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Connection: Upgrade"]

    static let all: [FailureCase] = requests + routing + credentials + bodies + accounts + upstreams

    private static let requests: [FailureCase] = [
        FailureCase(
            .bodyTooLarge, 413, "Content Too Large", "request_too_large", "request.body_too_large", grpc: 8,
            closes: true),
        FailureCase(
            .upgradeRefused, 400, "Bad Request", "request_invalid", "request.upgrade_not_allowed", grpc: 3,
            closes: true),
        FailureCase(
            .protocolUnknown, 501, "Not Implemented", "request_invalid", "request.protocol_unknown", grpc: 12),
        FailureCase(
            .upgradeMalformed, 400, "Bad Request", "request_invalid", "request.upgrade_malformed", grpc: 3,
            closes: true),
        FailureCase(
            .webSocketVersion, 426, "Upgrade Required", "request_invalid", "request.websocket_version", grpc: 3,
            fields: upgrade),
        FailureCase(
            .requestTimeout, 408, "Request Timeout", "request_invalid", "request.timed_out", grpc: 3, closes: true),
        FailureCase(
            .displaced, 503, "Service Unavailable", "overloaded", "server.connection_displaced", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1, closes: true),
        FailureCase(
            .drainOver, 503, "Service Unavailable", "overloaded", "server.drain_over", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1, closes: true),
        FailureCase(
            .tooManyConnections, 503, "Service Unavailable", "overloaded", "server.too_many_connections", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1, closes: true),
        FailureCase(
            .bodiesOverShare, 503, "Service Unavailable", "overloaded", "request.bodies_over_share", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1),
        FailureCase(
            .tooManyUnderWay, 503, "Service Unavailable", "overloaded", "limits.concurrency_exceeded", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1),
        FailureCase(
            .rateExceeded("per_person", retryAfter: 30), 429, "Too Many Requests", "throttled", "limits.rate_exceeded",
            grpc: 8, fields: ["Retry-After: 30"], retryAfter: 30),
        FailureCase(
            .movedToHTTPS(
                authority: Array("a.example:8080".utf8), path: Array("/b".utf8), query: Array("?c=d".utf8), port: 8443),
            308, "Permanent Redirect", "https_required",
            "server.moved_to_https", grpc: 13, fields: ["Location: https://a.example:8443/b?c=d"]),
        FailureCase(
            .localFailed, 503, "Service Unavailable", "auth_unavailable", "server.handler_timed_out", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1),
    ]

    private static let routing: [FailureCase] = [
        FailureCase(.noRoute, 404, "Not Found", "no_route", "router.no_route", grpc: 12),
        FailureCase(.noRoute("test.reason"), 404, "Not Found", "no_route", "test.reason", grpc: 12),
        FailureCase(.matchFailed, 404, "Not Found", "no_route", "router.match_limit", grpc: 12),
        FailureCase(
            .methodNotAllowed("GET, HEAD"), 405, "Method Not Allowed", "method_not_allowed",
            "router.method_not_allowed", grpc: 12, fields: ["Allow: GET, HEAD"]),
        FailureCase(
            .methodNeverAllowed, 405, "Method Not Allowed", "method_not_allowed", "router.method_not_allowed",
            grpc: 12, fields: ["Allow: \(methods)"]),
    ]

    private static let credentials: [FailureCase] = [
        FailureCase(
            .credentialMissing, 401, "Unauthorized", "credential_missing", "auth.credential_missing", grpc: 16,
            fields: [bearer]),
        FailureCase(
            .credentialInvalid("test.reason"), 401, "Unauthorized", "credential_invalid", "test.reason", grpc: 16,
            fields: [invalid]),
        FailureCase(
            .notAllowed("test.reason"), 403, "Forbidden", "not_allowed", "test.reason", grpc: 7,
            fields: [insufficient]),
        FailureCase(
            .authUnavailable("test.reason"), 503, "Service Unavailable", "auth_unavailable", "test.reason", grpc: 14,
            fields: ["Retry-After: 1"], retryAfter: 1),
        FailureCase(
            .authUnavailable("test.reason", retryAfter: 86_400), 503, "Service Unavailable", "auth_unavailable",
            "test.reason", grpc: 14, fields: ["Retry-After: 86400"], retryAfter: 86_400),
        FailureCase(
            .throttled("test.reason", retryAfter: 7), 429, "Too Many Requests", "throttled", "test.reason", grpc: 8,
            fields: ["Retry-After: 7"], retryAfter: 7),
        // 0 leaves the field out.
        FailureCase(
            .throttled("test.reason", retryAfter: 0), 429, "Too Many Requests", "throttled", "test.reason", grpc: 8),
    ]

    private static let bodies: [FailureCase] = [
        FailureCase(.malformed("test.reason"), 400, "Bad Request", "request_invalid", "test.reason", grpc: 3),
        FailureCase(
            .unsupportedMediaType("test.reason"), 415, "Unsupported Media Type", "request_invalid", "test.reason",
            grpc: 3),
        FailureCase(.tooLarge("test.reason"), 413, "Content Too Large", "request_too_large", "test.reason", grpc: 8),
    ]

    private static let accounts: [FailureCase] = [
        FailureCase(.notFound("test.reason"), 404, "Not Found", "not_found", "test.reason", grpc: 12),
        FailureCase(.identityTaken("test.reason"), 409, "Conflict", "identity_taken", "test.reason", grpc: 10),
        FailureCase(
            .providerAlreadyLinked("test.reason"), 409, "Conflict", "provider_already_linked", "test.reason",
            grpc: 10),
        FailureCase(.lastIdentity("test.reason"), 409, "Conflict", "last_identity", "test.reason", grpc: 10),
    ]

    private static let upstreams: [FailureCase] = [
        FailureCase(
            .upgradeNotCarried, 502, "Bad Gateway", "upstream_unavailable", "upstream.carries_no_upgrades", grpc: 14),
        FailureCase(
            .upstreamUnavailable("test.reason"), 502, "Bad Gateway", "upstream_unavailable", "test.reason", grpc: 14),
        FailureCase(.loopDetected, 508, "Loop Detected", "loop_detected", "request.loop_detected", grpc: 13),
        FailureCase(.upstreamInvalid("test.reason"), 502, "Bad Gateway", "upstream_invalid", "test.reason", grpc: 14),
        FailureCase(
            .upstreamTimeout("test.reason"), 504, "Gateway Timeout", "upstream_timeout", "test.reason", grpc: 4),
    ]
}
