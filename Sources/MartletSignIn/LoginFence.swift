package import MartletCore
internal import MartletCrypto

/// Keeps a login that was overtaken from leaving a session behind.
///
/// A login proves an identity first and makes its session last. When the identity is unlinked, or its password changed,
/// between the two, the sessions that such a change ends do not include the one that is only about to be made. So a
/// change leaves a numbered mark *before* it ends sessions, and a login looks for one *after* it made its own: of any
/// two, one sees the other. Numbers come from the store, so that instances need not agree on the time.
package struct LoginFence: Sendable {
    /// How far the numbers were when a login began.
    package struct Start: Sendable { fileprivate let number: Int }

    /// Longer than any login takes.
    private static let markLifetime = Duration.seconds(300)
    private static let counterLifetime = Duration.seconds(400 * 86_400)

    private let store: any SharedStoring
    private let keyPrefix: String

    /// - Parameter keyPrefix: what every key of the store begins with.
    package init(store: any SharedStoring, keyPrefix: String) {
        self.store = store.partition(.changes)
        self.keyPrefix = keyPrefix
    }

    /// To be called before anything is proved; shows an outage of the store before a code that works once is used up.
    package func start() async throws(StoreError) -> Start {
        Start(number: try await store.counter("\(keyPrefix)signin:changes").count)
    }

    /// Marks a change of a subject's identity; to be called once it is done, before sessions are ended.
    package func mark(_ subject: String, provider: String) async throws(StoreError) {
        let number = try await store.increment("\(keyPrefix)signin:changes", lifetime: Self.counterLifetime).count
        try await store.set(Array(String(number).utf8), for: key(subject, provider), lifetime: Self.markLifetime)
    }

    /// Whether a login that began at `start` was overtaken by a change; to be called when its session is there.
    package func wasOvertaken(_ start: Start, _ subject: String, provider: String) async throws(StoreError) -> Bool {
        switch await store.value(for: key(subject, provider)) {
        case .miss: false
        case .answer(let digits): (Int(String(decoding: digits, as: UTF8.self)) ?? .max) > start.number
        case .unavailable(let error): throw error
        }
    }

    /// Subjects may be long and hold anything: the key has their digest.
    private func key(_ subject: String, _ provider: String) -> String {
        let name = Base64URL.encode(SHA256.digest(Array("\(provider)\u{0}\(subject)".utf8)))
        return "\(keyPrefix)signin:change:\(name)"
    }
}
