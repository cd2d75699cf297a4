internal import MartletAuthenticator
internal import MartletProvider

extension RequestFacts {
    /// The request as the gateway routes it.
    /// - Parameter head: all of it, for a provider that reads it.
    init(_ texts: borrowing RequestTexts, head: ReceivedHead? = nil) {
        self = unsafe RequestFacts(
            method: String(decoding: texts.method, as: UTF8.self), host: String(decoding: texts.host, as: UTF8.self),
            path: String(decoding: texts.path, as: UTF8.self), head: head)
    }
}

extension Verifier.Target {
    /// What a provider gets of a request.
    func facts(of texts: borrowing RequestTexts, head: ReceivedHead? = nil) -> RequestFacts? {
        switch self {
        case .provider(let handle): handle.facts(of: texts, head: head)
        case .sessions, .proof: nil
        }
    }

    /// What names the request, for what marks proofs as used; empty for others.
    func requestID(in texts: borrowing RequestTexts) -> [UInt8] {
        switch self {
        case .provider(let handle) where handle.reuseKey == nil: []
        case .sessions: []
        case .provider, .proof: unsafe Array(texts.requestID)
        }
    }

    /// Whether it needs the whole head.
    var readsHead: Bool {
        switch self {
        case .provider(let handle): handle.readsHead
        case .sessions, .proof: false
        }
    }
}

extension ProviderHandle {
    /// What the provider gets of a request; `nil` if it does not ask for it.
    func facts(of texts: borrowing RequestTexts, head: ReceivedHead? = nil) -> RequestFacts? {
        reuseKey == nil ? nil : RequestFacts(texts, head: head)
    }
}
