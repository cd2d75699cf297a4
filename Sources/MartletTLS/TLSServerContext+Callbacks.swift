private import COpenSSL
internal import MartletCore

/// The callbacks of OpenSSL during a handshake.
///
/// They refer to the context without retaining it: connections retain their context, so it outlives every callback.
extension TLSServerContext {
    /// Installs the callbacks.
    func installCallbacks(on context: OpaquePointer) {
        let me = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_ex_data(context, TLSServerContext.dataIndex, me)
        unsafe SSL_CTX_set_alpn_select_cb(context, TLSServerContext.selectProtocol, me)
        unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context, TLSServerContext.prepareTicket)
        // Without a callback for the server name, TLS 1.2 would not store the name in the session.
        unsafe martlet_tls_set_server_name_callback(context) { _, _, _ in SSL_TLSEXT_ERR_OK }
        if selector.hasAlternatives { unsafe SSL_CTX_set_cert_cb(context, TLSServerContext.selectCertificates, me) }
        if verifies { unsafe SSL_CTX_set_session_ticket_cb(context, { _, _ in 1 }, TLSServerContext.checkTicket, nil) }
    }

    /// The index of the application data of a context.
    private static let dataIndex: Int32 = 0

    private static func of(_ raw: UnsafeMutableRawPointer?) -> TLSServerContext? {
        unsafe raw.map { unsafe Unmanaged<TLSServerContext>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let selectProtocol: SSL_CTX_alpn_select_cb_func = { _, chosen, chosenCount, offer, count, me in
        guard let context = unsafe of(me),
            let offer = unsafe offer, let chosen = unsafe chosen, let chosenCount = unsafe chosenCount,
            let choice = unsafe ALPN.choose(
                context.protocols, from: UnsafeBufferPointer(start: offer, count: Int(count)))
        else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        unsafe chosen.pointee = unsafe offer + choice.offset
        unsafe chosenCount.pointee = UInt8(truncatingIfNeeded: choice.count)
        return SSL_TLSEXT_ERR_OK
    }

    private static let selectCertificates: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
        ssl, me in
        guard let context = unsafe of(me) else { return 0 }
        let requested = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)
        let group = unsafe context.group(requested)
        guard group != context.selector.fallback else { return 1 }
        unsafe SSL_certs_clear(ssl)
        for number in group where unsafe !context.identities[number].use(on: ssl) { return 0 }
        return 1
    }

    private func group(_ requested: UnsafePointer<CChar>?) -> CertificateSelector.Group {
        guard let requested = unsafe requested else { return selector.fallback }
        let name = unsafe UnsafeRawPointer(requested).assumingMemoryBound(to: UInt8.self)
        var count = 0
        while unsafe name[count] != 0 { count += 1 }
        return unsafe selector.group(for: UnsafeBufferPointer(start: name, count: count))
    }

    /// Returns 0 for a full handshake, 1 for a valid ticket, 2 for a valid ticket that is renewed.
    private static let prepareTicket:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, OpaquePointer?, OpaquePointer?,
            Int32
        ) -> Int32 = { ssl, name, vector, cipher, mac, isEncrypting in
            guard let context = unsafe of(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), dataIndex)),
                let name = unsafe name, let vector = unsafe vector
            else { return -1 }
            guard isEncrypting == 0 else {
                guard let key = context.tickets.current(), unsafe RAND_bytes(vector, EVP_MAX_IV_LENGTH) == 1 else {
                    return -1
                }
                unsafe key.writeName(to: name)
                return unsafe key.prepare(cipher, mac, vector: vector, encrypting: true) ? 1 : -1
            }
            let bytes = unsafe UnsafeBufferPointer(start: name, count: TLSTicketKeys.Key.nameBytes)
            guard let key = unsafe context.tickets.named(bytes) else { return 0 }
            guard unsafe key.prepare(cipher, mac, vector: vector, encrypting: false) else { return -1 }
            // Clients of TLS 1.3 use a ticket once (RFC 8446 §C.4): without a new one they could not resume again.
            let isModern = unsafe SSL_version(ssl) >= TLS1_3_VERSION
            return isModern || !context.tickets.isCurrent(key) ? 2 : 1
        }

    /// Does not resume a session whose client certificate has expired meanwhile.
    private static let checkTicket: SSL_CTX_decrypt_session_ticket_fn = { ssl, session, _, _, status, _ in
        switch status {
        case SSL_TICKET_EMPTY, SSL_TICKET_NO_DECRYPT: return SSL_TICKET_RETURN_IGNORE_RENEW
        case SSL_TICKET_SUCCESS, SSL_TICKET_SUCCESS_RENEW: break
        default: return SSL_TICKET_RETURN_IGNORE
        }
        if let peer = unsafe SSL_SESSION_get0_peer(session) {
            guard let context = unsafe of(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), dataIndex)) else {
                return SSL_TICKET_RETURN_IGNORE
            }
            var now = time_t(context.tickets.clock.unixTime.seconds)
            guard unsafe X509_cmp_time(X509_get0_notAfter(peer), &now) > 0 else {
                return SSL_TICKET_RETURN_IGNORE_RENEW
            }
        }
        return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW
    }
}
