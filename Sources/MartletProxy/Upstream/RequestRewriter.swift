internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// Header injection: writes the head that an upstream gets.
///
/// Client copies of identity, forwarding and hop-by-hop fields are left out; runs of kept fields are copied whole; what the
/// gateway says comes last, so that nothing of the client's can stand in its place.
struct RequestRewriter: ~Copyable {
    /// The connection's peer is in `trusted_proxies`.
    let isTrusted: Bool
    /// The client's connection is under TLS.
    let isSecure: Bool
    /// `Authorization` was used up by the gateway.
    let dropsAuthorization: Bool
    /// The route forwards credentials, the gateway's own tokens too.
    let keepsOwnTokens: Bool
    let keepsExpect: Bool
    let keepsTrailer: Bool
    /// The route takes out names of its own.
    let hasRemovals: Bool

    private var runStart = 0
    private var runEnd = 0
    private var sawForwardedFor = false
    private var sawForwarded = false
    private var sawProto = false
    private var sawForwardedHost = false

    init(
        isTrusted: Bool, isSecure: Bool, dropsAuthorization: Bool, keepsOwnTokens: Bool, keepsExpect: Bool,
        keepsTrailer: Bool, hasRemovals: Bool
    ) {
        self.isTrusted = isTrusted
        self.isSecure = isSecure
        self.dropsAuthorization = dropsAuthorization
        self.keepsOwnTokens = keepsOwnTokens
        self.keepsExpect = keepsExpect
        self.keepsTrailer = keepsTrailer
        self.hasRemovals = hasRemovals
    }

    /// Copies a line that is kept; runs of them are copied at once.
    @inline(__always)
    mutating func copy(_ line: ByteRange, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        let start = Int(line.start)
        if runEnd != start {
            unsafe endFields(bytes, into: &out)
            runStart = start
        }
        runEnd = Int(line.end)
    }

    /// Copies what is left of kept lines.
    @inline(__always)
    mutating func endFields(_ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        if runEnd > runStart { unsafe out.append(unsafe UnsafeBufferPointer(rebasing: bytes[runStart..<runEnd])) }
        runStart = 0
        runEnd = 0
    }

    /// Whether the upstream gets a field of the client.
    @inline(__always)
    mutating func keeps(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ snapshot: borrowing Snapshot, _ route: Int
    ) -> Bool {
        if field.isConnectionOption { return false }
        switch field.known == .other ? field.alias : field.known {
        case .host, .connection, .contentLength, .transferEncoding, .te, .upgrade, .keepAlive, .proxyConnection,
            .proxyAuthorization, .proxyAuthenticate, .xRequestID, .via:
            return false
        case .expect: return keepsExpect
        case .trailer: return keepsTrailer
        case .authorization:
            return unsafe !dropsAuthorization && field.known == .authorization
                && (keepsOwnTokens || !OwnToken.isHeld(in: bytes[field.value]))
        case .forwarded:
            if isTrusted { return true }
            sawForwarded = true
            return false
        case .xForwardedURI, .xForwardedMethod, .xForwardedPort, .xForwardedPrefix, .xRealIP:
            return isTrusted
        case .xForwardedFor:
            sawForwardedFor = true
            return false
        case .xForwardedProto:
            sawProto = isTrusted
            return isTrusted
        case .xForwardedHost:
            sawForwardedHost = isTrusted
            return isTrusted
        default: break
        }
        if !isTrusted, unsafe isForwarding(bytes[field.name]) { return false }
        let all = unsafe bytes.span
        // The table is there as long as its snapshot: the references of what it holds need not be counted.
        let isReserved = unsafe Unmanaged.passUnretained(snapshot.routes)._withUnsafeGuaranteedRef {
            $0.reservedNames.contains(field, in: all)
        }
        if isReserved { return false }
        return !hasRemovals || !snapshot.removals[route].contains(field, in: all)
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

    /// Whether a trusted peer's list of addresses is kept and extended.
    var extendsChain: Bool { sawForwardedFor && isTrusted }

    /// Writes `X-Forwarded-*` from behind the list of addresses on, and `Forwarded` where a client tried to set it.
    @inline(__always)
    func writeForwarding(
        _ address: AddressText, authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        out.append(address)
        switch (sawProto, isSecure) {
        case (false, true): out.append("\r\nX-Forwarded-Proto: https")
        case (false, false): out.append("\r\nX-Forwarded-Proto: http")
        case (true, _): break
        }
        if !sawForwardedHost {
            out.append("\r\nX-Forwarded-Host: ")
            unsafe out.append(authority)
        }
        if sawForwarded { unsafe writeForwarded(address, authority: authority, into: &out) }
        out.append("\r\n")
    }

    /// RFC 7239 §4.
    @inline(never)
    private func writeForwarded(
        _ address: AddressText, authority: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        out.append("\r\nForwarded: for=")
        out.append(address.isV6 ? "\"[" : "")
        out.append(address)
        out.append(address.isV6 ? "]\"" : "")
        out.append(isSecure ? ";proto=https;host=\"" : ";proto=http;host=\"")
        unsafe out.append(authority)
        out.append("\"")
    }
}
