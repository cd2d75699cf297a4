internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// Header injection: writes the head that an upstream gets.
///
/// Client copies of identity, forwarding and hop-by-hop fields are left out; runs of kept fields are copied whole; what the
/// gateway says comes last, so that nothing of the client's can stand in its place.
struct RequestRewriter: ~Copyable {
    /// What the gateway says about the connection, to be written as forwarding fields.
    struct Forwarding {
        let address: [UInt8]
        let isTrusted: Bool
        /// The client's connection is under TLS.
        let isSecure: Bool
    }

    /// What is left out on top of the fixed rules.
    struct Removal {
        let routes: RouteTable
        /// The route's own removals, where it has any.
        let removals: FieldNameSet?
        /// `Authorization` was used up by the gateway.
        let dropsAuthorization: Bool
        /// The route forwards credentials, the gateway's own tokens too.
        let keepsOwnTokens: Bool
    }

    private var runStart = 0
    private var runEnd = 0
    private var sawForwardedFor = false
    private var sawForwarded = false
    private var sawProto = false
    private var sawForwardedHost = false

    /// Writes every field of the client that may pass.
    mutating func copyFields(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ removal: borrowing Removal,
        _ forwarding: borrowing Forwarding, keepsExpect: Bool, keepsTrailer: Bool, into out: inout ByteBuffer
    ) {
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            let start = Int(field.line.start)
            if unsafe isKept(field, bytes, removal, forwarding, keepsExpect, keepsTrailer) {
                if runEnd != start {
                    unsafe flush(bytes, into: &out)
                    runStart = start
                }
                runEnd = Int(field.line.end)
            }
        }
        unsafe flush(bytes, into: &out)
    }

    private mutating func flush(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        if runEnd > runStart { unsafe out.append(unsafe UnsafeBufferPointer(rebasing: bytes[runStart..<runEnd])) }
        runStart = 0
        runEnd = 0
    }

    private mutating func isKept(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ removal: borrowing Removal,
        _ forwarding: borrowing Forwarding, _ keepsExpect: Bool, _ keepsTrailer: Bool
    ) -> Bool {
        if field.isConnectionOption { return false }
        switch field.known == .other ? field.alias : field.known {
        case .host, .connection, .contentLength, .transferEncoding, .te, .upgrade, .keepAlive, .proxyConnection,
            .proxyAuthorization, .proxyAuthenticate, .xRequestID, .via:
            return false
        case .expect: return keepsExpect
        case .trailer: return keepsTrailer
        case .authorization:
            return unsafe !removal.dropsAuthorization && field.known == .authorization
                && (removal.keepsOwnTokens || !OwnToken.isHeld(in: bytes[field.value]))
        case .forwarded:
            if forwarding.isTrusted { return true }
            sawForwarded = true
            return false
        case .xForwardedURI, .xForwardedMethod, .xForwardedPort, .xForwardedPrefix, .xRealIP:
            return forwarding.isTrusted
        case .xForwardedFor:
            sawForwardedFor = true
            return false
        case .xForwardedProto:
            sawProto = forwarding.isTrusted
            return forwarding.isTrusted
        case .xForwardedHost:
            sawForwardedHost = forwarding.isTrusted
            return forwarding.isTrusted
        default: break
        }
        if !forwarding.isTrusted, unsafe isForwarding(bytes[field.name]) { return false }
        let all = unsafe bytes.span
        if removal.routes.reservedNames.contains(field, in: all) { return false }
        guard let removals = removal.removals else { return true }
        return !removals.contains(field, in: all)
    }

    /// Whether a name begins with `X-Forwarded-` to somebody who folds names: what it says is for a proxy to say.
    private func isForwarding(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let prefix: StaticString = "x-forwarded-"
        guard name.count > prefix.utf8CodeUnitCount, unsafe name[0] | 0x20 == 0x78 else { return false }
        for index in 0..<prefix.utf8CodeUnitCount {
            let (byte, wanted) = unsafe (name[index], prefix.utf8Start[index])
            let isDash = byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
            guard byte | 0x20 == wanted || (isDash && wanted == UInt8(ascii: "-")) else { return false }
        }
        return true
    }

    /// Writes `X-Forwarded-*`, and `Forwarded` where a client tried to set it.
    ///
    /// A trusted peer's list is kept and extended.
    func writeForwarding(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ forwarding: borrowing Forwarding,
        into out: inout ByteBuffer
    ) {
        out.append("X-Forwarded-For: ")
        if sawForwardedFor && forwarding.isTrusted {
            for index in 0..<head.fields.count where head.fields[index].known == .xForwardedFor {
                unsafe out.append(bytes[head.fields[index].value])
                out.append(", ")
            }
        }
        out.append(forwarding.address)
        if !sawProto {
            out.append(forwarding.isSecure ? "\r\nX-Forwarded-Proto: https" : "\r\nX-Forwarded-Proto: http")
        }
        if !sawForwardedHost {
            out.append("\r\nX-Forwarded-Host: ")
            unsafe out.append(bytes[head.authority])
        }
        if sawForwarded { unsafe writeForwarded(of: head, bytes, forwarding, into: &out) }
        out.append("\r\n")
    }

    /// RFC 7239 §4.
    private func writeForwarded(
        of head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, _ forwarding: borrowing Forwarding,
        into out: inout ByteBuffer
    ) {
        let isV6 = forwarding.address.contains(UInt8(ascii: ":"))
        out.append("\r\nForwarded: for=")
        out.append(isV6 ? "\"[" : "")
        out.append(forwarding.address)
        out.append(isV6 ? "]\"" : "")
        out.append(forwarding.isSecure ? ";proto=https;host=\"" : ";proto=http;host=\"")
        unsafe out.append(bytes[head.authority])
        out.append("\"")
    }
}
