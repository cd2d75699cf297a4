/// The fields that the gateway itself looks at.
package enum KnownField: UInt8, Sendable, CaseIterable {
    case other
    // The first line is what `isJudged` tells by its numbers.
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect, authorization
    case proxyAuthorization, proxyAuthenticate, proxyConnection, keepAlive, wwwAuthenticate
    case forwarded, xForwardedFor, xForwardedProto, xForwardedHost, xForwardedURI, xForwardedMethod, xForwardedPort
    case xForwardedPrefix, xRealIP, xRequestID
    case originalURI, originalMethod, originalHost
    case cookie, setCookie, contentType, contentEncoding, cacheControl, date, server, via, maxForwards, retryAfter,
        location
    case traceparent, tracestate
    case secWebSocketKey, secWebSocketAccept, secWebSocketVersion, secWebSocketProtocol, secWebSocketExtensions

    /// Whether a parser may look at the field's value, or refuse the head because of it.
    @inline(__always)
    var isJudged: Bool { rawValue &- KnownField.host.rawValue <= KnownField.authorization.rawValue &- 1 }

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
