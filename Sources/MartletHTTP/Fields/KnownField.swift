/// The fields that the gateway itself inspects.
@usableFromInline
package enum KnownField: UInt8, Sendable, CaseIterable {
    case other
    // `isCheckedInRequests` and `isCheckedInResponses` depend on the order of the first three lines.
    case keepAlive, proxyConnection, xRequestID
    case connection, contentLength, transferEncoding, te, upgrade
    case host, trailer, expect, authorization
    case proxyAuthorization, proxyAuthenticate, wwwAuthenticate
    case forwarded, xForwardedFor, xForwardedProto, xForwardedHost, xForwardedURI, xForwardedMethod, xForwardedPort
    case xForwardedPrefix, xRealIP
    case originalURI, originalMethod, originalHost
    case cookie, setCookie, contentType, contentEncoding, cacheControl, date, server, via, maxForwards, retryAfter,
        location
    case strictTransportSecurity, traceparent, tracestate
    case secWebSocketKey, secWebSocketAccept, secWebSocketVersion, secWebSocketProtocol, secWebSocketExtensions

    /// The raw value, without a call or a branch.
    @inlinable @inline(__always)
    var code: UInt8 { unsafe unsafeBitCast(self, to: UInt8.self) }

    /// The field of a `code`.
    @inlinable @inline(__always)
    init(code: UInt8) { self = unsafe unsafeBitCast(code, to: KnownField.self) }

    /// One of 64 bits, for sets of known fields.
    @inlinable @inline(__always)
    package var bit: UInt64 { 1 &<< UInt64(code) }

    /// Whether a request parser inspects the field's value or may reject the head because of it.
    @inline(__always)
    var isCheckedInRequests: Bool {
        code &- KnownField.connection.code <= KnownField.authorization.code &- KnownField.connection.code
    }

    /// Whether the field is about framing or the connection to the upstream, or is one that the gateway writes itself.
    @inline(__always)
    var isCheckedInResponses: Bool {
        code &- KnownField.keepAlive.code <= KnownField.upgrade.code &- KnownField.keepAlive.code
    }

    /// Whether no response to a client has the upstream's field: it concerns one connection only, or the gateway writes
    /// it itself. `Content-Length` is checked, and forwarded where it describes the body.
    @inline(__always)
    package var isDroppedFromResponses: Bool { isCheckedInResponses && self != .contentLength }

    /// The name in lower case; empty for `other`.
    package var name: StaticString {
        switch self {
        case .other: ""
        case .host: "host"
        case .connection: "connection"
        case .contentLength: "content-length"
        case .transferEncoding: "transfer-encoding"
        case .te: "te"
        case .trailer: "trailer"
        case .upgrade: "upgrade"
        case .expect: "expect"
        case .authorization: "authorization"
        case .proxyAuthorization: "proxy-authorization"
        case .proxyAuthenticate: "proxy-authenticate"
        case .proxyConnection: "proxy-connection"
        case .keepAlive: "keep-alive"
        case .wwwAuthenticate: "www-authenticate"
        case .forwarded: "forwarded"
        case .xForwardedFor: "x-forwarded-for"
        case .xForwardedProto: "x-forwarded-proto"
        case .xForwardedHost: "x-forwarded-host"
        case .xForwardedURI: "x-forwarded-uri"
        case .xForwardedMethod: "x-forwarded-method"
        case .xForwardedPort: "x-forwarded-port"
        case .xForwardedPrefix: "x-forwarded-prefix"
        case .xRealIP: "x-real-ip"
        case .xRequestID: "x-request-id"
        case .originalURI: "x-original-uri"
        case .originalMethod: "x-original-method"
        case .originalHost: "x-original-host"
        case .cookie: "cookie"
        case .setCookie: "set-cookie"
        case .contentType: "content-type"
        case .contentEncoding: "content-encoding"
        case .cacheControl: "cache-control"
        case .date: "date"
        case .server: "server"
        case .via: "via"
        case .maxForwards: "max-forwards"
        case .retryAfter: "retry-after"
        case .location: "location"
        case .strictTransportSecurity: "strict-transport-security"
        case .traceparent: "traceparent"
        case .tracestate: "tracestate"
        case .secWebSocketKey: "sec-websocket-key"
        case .secWebSocketAccept: "sec-websocket-accept"
        case .secWebSocketVersion: "sec-websocket-version"
        case .secWebSocketProtocol: "sec-websocket-protocol"
        case .secWebSocketExtensions: "sec-websocket-extensions"
        }
    }
}
