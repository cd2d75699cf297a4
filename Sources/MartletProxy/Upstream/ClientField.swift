internal import MartletConfig
internal import MartletHTTP
internal import MartletRouter

/// What the gateway makes of a client's field.
enum ClientField: UInt8 {
    /// It passes.
    case plain
    /// It says who calls: only the gateway does.
    case identity
    /// It is about the client's connection or the message's framing, or the gateway writes it itself; or it looks like one that does.
    case own
    case host, expect, trailer, authorization
    case forwarded, forwardedFor, forwardedProto, forwardedHost
    /// It is for a proxy in `trusted_proxies` to say, and for nobody else.
    case proxys
    /// It asks for another method than the request's.
    case methodOverride
    /// It has the letters of `X-Request-Id`, and is taken for it if it is as long.
    ///
    /// `X-RequestId` is a name of its own, which some clients have honestly.
    case requestIDLookAlike

    /// The kind of a number in the table.
    @inline(__always)
    init(code: UInt8) { self = ClientField(rawValue: code) ?? .own }

    /// The table that a configuration makes: the later of two meanings counts.
    ///
    /// - Parameter stripped: the names that only proxies may send (`server.strip_headers`).
    static func table(reserved: FieldNameSet, stripped: [String]) -> FieldNameTable {
        var known = [KnownField: ClientField]()
        var names: [(name: String, value: UInt8)] = []
        // Spelled otherwise, a field that the gateway acts upon is nobody's.
        for (field, kind) in knownKinds {
            known[field] = kind
            names.append(
                (field.name.description, (field == .xRequestID ? ClientField.requestIDLookAlike : own).rawValue))
        }
        names.append(("HTTP2-Settings", own.rawValue))
        // Of the family of X-Forwarded-*, what the list leaves out passes.
        for name in ServerConfiguration.defaultStrippedHeaders { names.append((name, plain.rawValue)) }
        let letters = Set(stripped.map { FieldLetters.of($0) })
        for field in [KnownField.xForwardedPort, .xForwardedPrefix] { known[field] = proxys }
        for name in stripped {
            names.append((name, (overrides.contains(FieldLetters.of(name)) ? methodOverride : proxys).rawValue))
        }
        for field in KnownField.allCases where letters.contains(FieldLetters.of(field.name.description)) {
            if known[field] == nil { known[field] = proxys }
        }
        for name in reserved.names { names.append((name, identity.rawValue)) }
        for field in KnownField.allCases where field != .other && reserved.contains(field.name.description) {
            known[field] = identity
        }
        return FieldNameTable(
            known: known.map { ($0.key, $0.value.rawValue) }, names: names,
            families: .init(authentication: identity.rawValue, forwarding: proxys.rawValue))
    }

    /// The names that frameworks take another method from.
    private static let overrides = Set(
        ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"].map { FieldLetters.of($0) })

    private static let knownKinds: [(KnownField, ClientField)] = [
        (.connection, own), (.contentLength, own), (.transferEncoding, own), (.te, own), (.upgrade, own),
        (.keepAlive, own), (.proxyConnection, own), (.proxyAuthorization, own), (.proxyAuthenticate, own),
        (.xRequestID, own), (.via, own), (.host, host), (.expect, expect), (.trailer, trailer),
        (.authorization, authorization), (.forwarded, forwarded), (.xForwardedFor, forwardedFor),
        (.xForwardedProto, forwardedProto), (.xForwardedHost, forwardedHost),
    ]
}
