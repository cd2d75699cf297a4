package import MartletAuthenticator
internal import MartletBrowser
package import MartletConfig
internal import MartletCore
package import MartletHTTP
package import MartletProvider
package import MartletResponder
internal import MartletTLS

/// What the connection of a request says about its client, and what the client's own URL and certificate are behind
/// proxies.
@safe package struct ClientSide {
    /// Whether the listener has TLS.
    package let isSecure: Bool
    /// Whether the peer is a trusted proxy, which says what the client sees.
    package let isTrusted: Bool
    /// What the request is, if a proxy asks about it.
    package var check: CheckMarks = []
    package var opensWebSocket = false
    /// The certificate of the handshake. Borrowed from its connection: nearly no request has one, and none counts a
    /// reference to it.
    package unowned(unsafe) var certificate: ClientCertificateBytes?

    package init(isSecure: Bool, isTrusted: Bool, check: CheckMarks = [], opensWebSocket: Bool = false) {
        self.isSecure = isSecure
        self.isTrusted = isTrusted
        self.check = check
        self.opensWebSocket = opensWebSocket
    }

    /// The client's certificate: that of the handshake, or the one that a trusted proxy names, which ended the client's
    /// TLS (RFC 9440). The proxy's own is not the client's.
    /// - Throws: 400 for a field that a trusted proxy would not send.
    package func certificate(
        in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(Failure) -> ClientCertificateBytes? {
        if isTrusted {
            if let der = unsafe try Self.forwardedCertificate(in: head, bytes) {
                return ClientCertificateBytes(der: der)
            }
            // The peer of a check is never the client.
            guard !head.fields.has(.xForwardedFor), !head.fields.has(.forwarded), check.isEmpty else { return nil }
        }
        return unsafe certificate
    }

    /// Why the client's certificate is not the one that a credential is bound to.
    package func failure(
        expecting thumbprint: String, in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> Failure? {
        do throws(Failure) {
            guard let certificate = unsafe try certificate(in: head, bytes) else {
                return .certificateInvalid("auth.certificate_missing")
            }
            return certificate.thumbprint.hasSameBytes(as: thumbprint)
                ? nil : .certificateInvalid("auth.certificate_mismatch")
        } catch {
            return error
        }
    }

    /// Checks that no other site caused a request whose credential is a certificate.
    /// - Parameter named: the request's origin, if the route accepts it.
    /// - Throws: 403 for one that a browser sent for another site, 400 where the fields that say so are repeated.
    package func checkSite(
        _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, named: @autoclosure () -> [String],
        trusting proxies: [AddressRange]
    ) throws(Failure) {
        guard unsafe CrossSiteRule.isFromBrowser(bytes.span, head.fields) else { return }
        let authority = unsafe ClientURL(head, bytes, from: self, trusting: proxies).authority
        do throws(BrowserError) {
            unsafe try CrossSiteRule.checkCertificate(
                bytes.span, head.fields, method: head.method, isWebSocket: opensWebSocket, authority: authority,
                origins: named())
        } catch {
            throw error.failure
        }
    }

    /// The certificate in the field `Client-Cert`; `nil` without the field.
    private static func forwardedCertificate(
        in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(Failure) -> [UInt8]? {
        let values = unsafe head.values(of: "client-cert", bytes)
        guard let value = values.first else { return nil }
        guard values.count == 1 else { throw .malformed("client_cert.repeated") }
        do throws(ClientCertificateFieldError) {
            return try ClientCertificateFields.certificate(value)
        } catch {
            throw .malformed(error.code)
        }
    }

    /// The certificates that a trusted proxy names besides the client's.
    /// - Throws: 400 for a field that a trusted proxy would not send.
    package func certificateChain(
        in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(Failure) -> [[UInt8]] {
        guard isTrusted else { return [] }
        let values = unsafe head.values(of: "client-cert-chain", bytes)
        guard !values.isEmpty else { return [] }
        do throws(ClientCertificateFieldError) {
            return try ClientCertificateFields.chain(Array(values.joined(separator: ", ".utf8)))
        } catch {
            throw .malformed(error.code)
        }
    }

    /// The request's head as the client sent it, for a provider that reads it.
    package func receivedHead(
        _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, trusting proxies: [AddressRange]
    ) -> ReceivedHead {
        let url = unsafe ClientURL(head, bytes, from: self, trusting: proxies)
        return unsafe ReceivedHead(
            head, bytes, scheme: url.scheme, authority: url.authority,
            hasBody: check.isEmpty ? !head.framing.isEmpty : check.contains(.mayHaveBody))
    }
}

extension ClientURL {
    /// The URL of a request as the client sees it.
    /// - Parameter proxies: those that are trusted.
    package init(
        _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, from client: ClientSide,
        trusting proxies: [AddressRange]
    ) {
        var isSecure = client.isSecure
        if !client.check.isEmpty {
            isSecure = client.check.contains(.isSecure) || isSecure && !client.check.contains(.isInsecure)
        }
        var scheme = isSecure ? "https" : "http"
        var authority = unsafe String(decoding: bytes[head.authority], as: UTF8.self)
        // The head of a check is that of the client's request already.
        if client.isTrusted, client.check.isEmpty {
            if head.fields.has(.forwarded) {
                let elements = unsafe ForwardedChain.elements(of: head, bytes)
                let origin = ForwardedChain.origin(of: elements, trusting: proxies)
                scheme = origin.scheme ?? scheme
                if let host = origin.host { authority = String(decoding: host, as: UTF8.self) }
            }
            if let forwarded = unsafe head.values(of: "x-forwarded-proto", bytes).last {
                scheme = String(decoding: forwarded, as: UTF8.self)
            }
            if let forwarded = unsafe head.values(of: "x-forwarded-host", bytes).last {
                authority = String(decoding: forwarded, as: UTF8.self)
            }
        }
        let path = unsafe String(decoding: bytes[head.path], as: UTF8.self)
        self.init(scheme: scheme, authority: authority, path: path)
    }
}

extension RequestHead {
    /// The values of the fields with a name in lower case.
    package func values(of name: String, _ bytes: UnsafeBufferPointer<UInt8>) -> [[UInt8]] {
        var values: [[UInt8]] = []
        for index in 0..<fields.count {
            let field = fields[index]
            guard field.name.count == name.utf8.count,
                unsafe String(decoding: bytes[field.name], as: UTF8.self).lowercased() == name
            else { continue }
            unsafe values.append(Array(bytes[field.value]))
        }
        return values
    }
}
