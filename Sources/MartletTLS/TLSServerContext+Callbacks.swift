private import COpenSSL
internal import MartletCore

/// What OpenSSL asks of a listener's context in the midst of a handshake.
///
/// It finds the context by itself: connections hold on to theirs, so it is there as long as anybody asks.
extension TLSServerContext {
    /// Has OpenSSL ask this context.
    func answerQuestions(of context: OpaquePointer) {
        let me = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe SSL_CTX_set_ex_data(context, TLSServerContext.place, me)
        unsafe SSL_CTX_set_alpn_select_cb(context, TLSServerContext.selectProtocol, me)
        unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context, TLSServerContext.prepareTicket)
        // Without an answer to the name, TLS 1.2 would not remember it.
        unsafe martlet_tls_set_server_name_callback(context) { _, _, _ in SSL_TLSEXT_ERR_OK }
        if choice.hasAlternatives { unsafe SSL_CTX_set_cert_cb(context, TLSServerContext.selectCertificates, me) }
        if verifies { unsafe SSL_CTX_set_session_ticket_cb(context, { _, _ in 1 }, TLSServerContext.judgeTicket, nil) }
    }

    /// Where the context keeps what is the program's.
    private static let place: Int32 = 0

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
        let asked = unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)
        let group = unsafe context.group(asked)
        guard group != context.choice.fallback else { return 1 }
        unsafe SSL_certs_clear(ssl)
        for number in group where unsafe !context.identities[number].use(on: ssl) { return 0 }
        return 1
    }

    private func group(_ asked: UnsafePointer<CChar>?) -> CertificateChoice.Group {
        guard let asked = unsafe asked else { return choice.fallback }
        let name = unsafe UnsafeRawPointer(asked).assumingMemoryBound(to: UInt8.self)
        var count = 0
        while unsafe name[count] != 0 { count += 1 }
        return unsafe choice.group(for: UnsafeBufferPointer(start: name, count: count))
    }

    /// 0: a full handshake; 1: the ticket is good; 2: it is good, and the client gets another one.
    private static let prepareTicket:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, OpaquePointer?, OpaquePointer?,
            Int32
        ) -> Int32 = { ssl, name, vector, cipher, seal, isSealing in
            guard let context = unsafe of(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), place)),
                let name = unsafe name, let vector = unsafe vector
            else { return -1 }
            guard isSealing == 0 else {
                guard let key = context.tickets.current(), unsafe RAND_bytes(vector, EVP_MAX_IV_LENGTH) == 1 else {
                    return -1
                }
                unsafe key.writeName(to: name)
                return unsafe key.prepare(cipher, seal, vector: vector, sealing: true) ? 1 : -1
            }
            let bytes = unsafe UnsafeBufferPointer(start: name, count: TLSTicketKeys.Key.nameBytes)
            guard let key = unsafe context.tickets.named(bytes) else { return 0 }
            guard unsafe key.prepare(cipher, seal, vector: vector, sealing: false) else { return -1 }
            // Clients of TLS 1.3 use a ticket once (RFC 8446 §C.4): without another one they could not come back.
            let isModern = unsafe SSL_version(ssl) >= TLS1_3_VERSION
            return isModern || !context.tickets.isCurrent(key) ? 2 : 1
        }

    /// Lets no session go on whose client's certificate has expired meanwhile.
    private static let judgeTicket: SSL_CTX_decrypt_session_ticket_fn = { _, session, _, _, status, _ in
        switch status {
        case SSL_TICKET_EMPTY, SSL_TICKET_NO_DECRYPT: return SSL_TICKET_RETURN_IGNORE_RENEW
        case SSL_TICKET_SUCCESS, SSL_TICKET_SUCCESS_RENEW: break
        default: return SSL_TICKET_RETURN_IGNORE
        }
        if let peer = unsafe SSL_SESSION_get0_peer(session),
            unsafe X509_cmp_current_time(X509_get0_notAfter(peer)) <= 0
        {
            return SSL_TICKET_RETURN_IGNORE_RENEW
        }
        return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW
    }
}
