package import MartletCore
internal import MartletCrypto
package import MartletSession

/// Prevents a login that races with an unlinking or a password change from leaving a session behind.
///
/// A login authenticates first and creates its session last. If the identity is unlinked, or its password changed, in
/// between, ending its sessions misses the one that is about to be created. So a change stores a numbered mark *before*
/// it ends sessions, and a login checks for one *after* it has created its session: of any two, one sees the other.
/// Numbers come from the store, so that instances need not agree on the time.
package struct LoginFence: Sendable {
    /// The number of the last change before a login began.
    package struct Start: Sendable {
        /// Negative if the node that has the number is unavailable, and others are not: any mark counts then.
        package let number: Int

        package init(number: Int) { self.number = number }
    }

    /// Longer than any login can take, with the time in which an app exchanges its code.
    private static let markLifetime = Duration.seconds(300)
    private static let counterLifetime = Duration.seconds(400 * 86_400)

    private let store: any PartitionedStoring
    /// The number of the last change, and marks to be read.
    private let changes: any SharedStoring
    private let keyPrefix: String
    private let isNeeded: Bool

    /// - Parameters:
    ///   - keyPrefix: the prefix of all keys in the store.
    ///   - isNeeded: whether identities can change at all, as those of accounts can.
    package init(store: any PartitionedStoring, keyPrefix: String, isNeeded: Bool = true) {
        self.store = store
        changes = store.partition(.changes, for: .gateway)
        self.keyPrefix = keyPrefix
        self.isNeeded = isNeeded
    }

    /// To be called before authentication, so that an outage of the store is found before a code is consumed.
    package func start() async throws(StoreError) -> Start {
        guard isNeeded else { return Start(number: 0) }
        do throws(StoreError) {
            return Start(number: try await changes.counter("\(keyPrefix)signin:changes").count)
        } catch {
            // The number is at one node, and the session of this login is probably at another.
            guard changes.isPartlyAvailable else { throw error }
            return Start(number: -1)
        }
    }

    /// Where a session store finds the mark of a change that overtook a login.
    package func mark(after start: Start, _ subject: String, provider: String) -> ChangeMark {
        ChangeMark(key: key(subject, provider), number: start.number)
    }

    /// Marks a change of a subject's identity; to be called after it, but before sessions are ended.
    package func mark(_ subject: String, provider: String) async throws(StoreError) {
        let number = try await changes.increment("\(keyPrefix)signin:changes", lifetime: Self.counterLifetime).count
        try await store.partition(.changes, for: WorkOwner(named: subject)).set(
            ChangeMark.bytes(of: number), for: key(subject, provider), lifetime: Self.markLifetime)
    }

    /// Whether a login that began at `start` was overtaken by a change; to be called when its session exists, unless the
    /// session store looks for the mark itself.
    /// - Throws: also if the start's number was unavailable and there is a mark.
    package func wasOvertaken(_ start: Start, _ subject: String, provider: String) async throws(StoreError) -> Bool {
        switch await changes.value(for: key(subject, provider)) {
        case .miss: return false
        case .found(let bytes):
            guard (ChangeMark.number(in: bytes) ?? .max) > start.number else { return false }
            // Which of them came first is not known then.
            guard start.number >= 0 else {
                throw StoreError(code: .sessionContended, message: "the number of the last change is unavailable")
            }
            return true
        case .unavailable(let error): throw error
        }
    }

    /// Marks a change of the password of a user, who may have no account yet: that of the first login in progress.
    /// - Parameter user: the canonical name.
    package func mark(user: String, provider: String) async throws(StoreError) {
        try await mark(Self.subject(ofUser: user), provider: provider)
    }

    /// Whether a login that began at `start` was overtaken by a change of the user's password.
    package func wasOvertaken(_ start: Start, user: String, provider: String) async throws(StoreError) -> Bool {
        try await wasOvertaken(start, Self.subject(ofUser: user), provider: provider)
    }

    /// No subject of an account has a space.
    private static func subject(ofUser user: String) -> String { "user \(user)" }

    /// The key contains a digest, because subjects may be long and contain any character.
    private func key(_ subject: String, _ provider: String) -> String {
        let name = Base64URL.encode(SHA256.digest(Array("\(provider)\u{0}\(subject)".utf8)))
        return ChangeMark.key(prefix: keyPrefix, subject: subject, name: name)
    }
}
