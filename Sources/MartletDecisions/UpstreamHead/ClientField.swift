internal import MartletConfig
package import MartletHTTP
internal import MartletRouter

/// How the gateway treats a client's field.
@usableFromInline package enum ClientField: UInt8, Sendable {
    /// It is forwarded.
    case plain
    /// It is an identity header, which only the gateway sets.
    case identity
    /// It concerns the connection or the framing, or the gateway writes it itself; or it looks like such a field.
    case own
    case host, expect, trailer, authorization
    /// It may contain cookies of the gateway.
    case cookie
    case forwarded, forwardedFor, forwardedProto, forwardedHost
    /// Only proxies in `trusted_proxies` may send it.
    case proxyOnly
    /// It overrides the request's method.
    case methodOverride
    /// It has the letters of `X-Request-Id`, and is treated like it if it has the same length: `X-RequestId` is another
    /// name, in legitimate use.
    case requestIDLookAlike
    /// Where the request has been.
    case via
    /// With what a client proves who it is to the gateway, on some route: `DPoP` and headers of keys.
    case credential

    /// The kind for a code in the table; most fields are plain.
    @inlinable package init(code: UInt8) { self = code == 0 ? .plain : ClientField(rawValue: code) ?? .own }

    /// Builds the table of a configuration: the later of two meanings counts.
    ///
    /// - Parameters:
    ///   - stripped: the names that only proxies may send (`server.strip_headers`).
    ///   - credentials: the names of fields that no upstream gets unless its route says so.
    ///   - cutsCookies: whether the gateway has cookies of its own.
    ///   - tracesRequests: whether the gateway writes trace contexts itself.
    package static func table(
        reserved: FieldNameSet, stripped: [String], credentials: [String] = [], cutsCookies: Bool = false,
        tracesRequests: Bool = false
    ) -> FieldNameTable {
        var known = [KnownField: ClientField]()
        var names: [(name: String, value: UInt8)] = []
        // In another spelling, a field that the gateway acts on is removed.
        for (field, kind) in knownKinds {
            known[field] = kind
            names.append(
                (field.name.description, (field == .xRequestID ? ClientField.requestIDLookAlike : own).rawValue))
        }
        names.append(("HTTP2-Settings", own.rawValue))
        // Of the X-Forwarded-* family, names of the default list that the configured list omits are forwarded.
        for name in ServerConfiguration.defaultStrippedHeaders { names.append((name, plain.rawValue)) }
        let letters = Set(stripped.map { FieldLetters.of($0) })
        for field in [KnownField.xForwardedPort, .xForwardedPrefix] { known[field] = proxyOnly }
        for name in stripped {
            names.append((name, (overrides.contains(FieldLetters.of(name)) ? methodOverride : proxyOnly).rawValue))
        }
        for field in KnownField.allCases where letters.contains(FieldLetters.of(field.name.description)) {
            if known[field] == nil { known[field] = proxyOnly }
        }
        // Even a trusted proxy's: an upstream could not distinguish it from a client's (RFC 9440 §4).
        for name in ["Client-Cert", "Client-Cert-Chain"] { names.append((name, own.rawValue)) }
        if tracesRequests {
            for field in [KnownField.traceparent, .tracestate] {
                known[field] = own
                names.append((field.name.description, own.rawValue))
            }
        }
        // A list of fields that only proxies may send does not let the gateway's cookies pass.
        if cutsCookies { known[KnownField.cookie] = known[.cookie] == nil ? cookie : own }
        for name in credentials { names.append((name, credential.rawValue)) }
        let keys = Set(credentials.map { FieldLetters.of($0) })
        for field in KnownField.allCases where keys.contains(FieldLetters.of(field.name.description)) {
            known[field] = credential
        }
        for name in reserved.names { names.append((name, identity.rawValue)) }
        for field in KnownField.allCases where field != .other && reserved.contains(field.name.description) {
            known[field] = identity
        }
        return FieldNameTable(
            known: known.map { ($0.key, $0.value.rawValue) }, names: names,
            families: .init(authentication: identity.rawValue, forwarding: proxyOnly.rawValue))
    }

    /// The names with which frameworks override the method.
    private static let overrides = Set(
        ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map { FieldLetters.of($0) })

    private static let knownKinds: [(KnownField, ClientField)] = [
        (.connection, own), (.contentLength, own), (.transferEncoding, own), (.te, own), (.upgrade, own),
        (.keepAlive, own), (.proxyConnection, own), (.proxyAuthorization, own), (.proxyAuthenticate, own),
        (.xRequestID, own), (.via, via), (.host, host), (.expect, expect), (.trailer, trailer),
        (.authorization, authorization), (.forwarded, forwarded), (.xForwardedFor, forwardedFor),
        (.xForwardedProto, forwardedProto), (.xForwardedHost, forwardedHost),
    ]
}
