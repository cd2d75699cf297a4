internal import MartletAuthenticator
internal import MartletCore

/// What other threads do for a loop, and the mailbox with their results.
struct LoopThreads: ~Copyable {
    let mailbox: Mailbox
    let verifier: Verifier
    /// Threads for the expensive steps of TLS handshakes.
    let handshakePool: ThreadPool
    /// Connections whose handshakes the loop continues.
    var handshakeQueue = HandshakeQueue()

    init(mailbox: Mailbox, verifier: Verifier, handshakePool: ThreadPool) {
        self.mailbox = mailbox
        self.verifier = verifier
        self.handshakePool = handshakePool
    }
}
