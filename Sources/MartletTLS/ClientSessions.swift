private import COpenSSL
internal import MartletCore

/// A cache of the last session with each server, for resumption.
///
/// Only used when a connection begins and when a server sends a session ticket.
@safe final class ClientSessions: Sendable {
    /// The maximum number of cached server names; beyond it, another name is evicted.
    static let maximumNames = 256

    /// Owns one reference to a session.
    // nonisolated(unsafe): OpenSSL counts references atomically.
    @safe private final class Session: Sendable {
        nonisolated(unsafe) let pointer: OpaquePointer

        init(_ pointer: OpaquePointer) { unsafe self.pointer = pointer }

        deinit { unsafe SSL_SESSION_free(pointer) }
    }

    private let sessions = Lock<[String: Session]>([:])

    /// The index of the application data of a context.
    private static let dataIndex: Int32 = 0

    /// Makes a context's connections store their sessions here; connections retain the owner of both.
    func attach(to context: OpaquePointer) {
        unsafe martlet_tls_hand_over_sessions(context)
        unsafe SSL_CTX_set_ex_data(context, ClientSessions.dataIndex, Unmanaged.passUnretained(self).toOpaque())
        unsafe SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let raw = unsafe SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), ClientSessions.dataIndex),
                let name = unsafe ClientSessions.name(of: ssl), let session = unsafe session
            else { return 0 }
            unsafe Unmanaged<ClientSessions>.fromOpaque(raw).takeUnretainedValue().store(session, name)
            return 1
        }
    }

    /// Offers the last session with the server of a connection.
    func offer(on ssl: OpaquePointer) {
        guard let name = unsafe ClientSessions.name(of: ssl), let session = sessions.withLock({ $0[name] }) else {
            return
        }
        // If the certificate has expired meanwhile, a full handshake must verify the current one.
        if let peer = unsafe SSL_SESSION_get0_peer(session.pointer),
            unsafe X509_cmp_current_time(X509_get0_notAfter(peer)) <= 0
        {
            return
        }
        unsafe SSL_set_session(ssl, session.pointer)
        ERR_clear_error()
    }

    /// The number of cached servers.
    var count: Int { sessions.withLock(\.count) }

    /// Stores a session and takes ownership of the reference.
    private func store(_ session: OpaquePointer, _ name: String) {
        let fresh = unsafe Session(session)
        let old = sessions.withLock { sessions in
            var old = sessions.updateValue(fresh, forKey: name)
            if sessions.count > ClientSessions.maximumNames, let other = sessions.keys.first(where: { $0 != name }) {
                old = sessions.removeValue(forKey: other)
            }
            return old
        }
        // Freed here, outside the lock.
        _ = consume old
    }

    /// The host name or address against which the peer is verified.
    @unsafe private static func name(of ssl: OpaquePointer?) -> String? {
        let parameters = unsafe SSL_get0_param(ssl)
        if let host = unsafe X509_VERIFY_PARAM_get0_host(parameters, 0) { return unsafe String(cString: host) }
        guard let address = unsafe X509_VERIFY_PARAM_get1_ip_asc(parameters) else { return nil }
        defer { unsafe CRYPTO_free(address, #fileID, #line) }
        return unsafe String(cString: address)
    }
}
