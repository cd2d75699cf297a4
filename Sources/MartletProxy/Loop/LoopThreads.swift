internal import MartletAuthenticator
internal import MartletCore
internal import MartletUpstreams

/// What other threads do for a loop, and the mailbox with their results.
struct LoopThreads: ~Copyable {
    let mailbox: Mailbox
    let verifier: Verifier
    /// Threads for the expensive steps of TLS handshakes.
    let handshakePool: ThreadPool
    /// Sends copies of requests to other upstreams; `nil` for listeners of the gateway itself.
    let mirror: (any MirrorReceiving)?
    /// What the tasks of requests are for that are handled in this process.
    let purpose: TaskPurpose
    /// The mailboxes of the other loops that use the same upstreams.
    let siblings: [Mailbox]
    /// Connections whose handshakes the loop continues.
    var handshakeQueue = HandshakeQueue()

    init(
        mailbox: Mailbox, verifier: Verifier, handshakePool: ThreadPool, mirror: (any MirrorReceiving)? = nil,
        purpose: TaskPurpose = .endpoints, siblings: [Mailbox] = []
    ) {
        self.siblings = siblings
        self.purpose = purpose
        self.mirror = mirror
        self.mailbox = mailbox
        self.verifier = verifier
        self.handshakePool = handshakePool
    }
}
