internal import MartletDecisions
internal import MartletHTTP

/// What the head for an upstream is written from, besides the client's head.
///
/// The texts are borrowed for the call that writes the head.
@safe struct ForwardedRequest: ~Copyable {
    let route: Int
    /// The index of the upstream.
    let upstream: Int
    /// The gateway consumed a credential of the request.
    let consumesCredential: Bool
    let expectsContinue: Bool
    /// The request has cookies of the gateway.
    let hasCookie: Bool
    /// The client uses an HTTP/2 stream.
    let isStream: Bool
    /// The path was received in its normal form.
    let isPathUnchanged: Bool
    let framing: BodyFraming
    /// The path in its normal form.
    let path: UnsafeBufferPointer<UInt8>
    let requestID: UnsafeBufferPointer<UInt8>
    /// The protocol to upgrade to, as the client spelled it; empty without an upgrade.
    let upgrade: UnsafeBufferPointer<UInt8>
    /// The identity headers, as complete lines.
    let identity: UnsafeBufferPointer<UInt8>
}

extension RequestFieldRules {
    /// The rules for one request, from those of its route.
    @inline(__always)
    func applied(to request: borrowing ForwardedRequest, isTrusted: Bool, isSecure: Bool) -> RequestFieldRules {
        var rules = self
        if !request.consumesCredential { rules.remove(.dropsAuthorization) }
        if isTrusted { rules.insert(.isTrusted) }
        if isSecure { rules.insert(.isSecure) }
        if request.expectsContinue { rules.insert(.keepsExpect) }
        if request.hasCookie { rules.insert(.cutsCookies) }
        return rules
    }
}
