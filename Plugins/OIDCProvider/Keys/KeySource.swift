internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// The keys of the issuer: at a URL that is configured, at one that is discovered, or in a file.
enum KeySource: Sendable {
    case url(IssuerKeys)
    case file(KeySet)
    case discovered(DiscoveredKeys, by: Discovery)

    /// Looks up a key in memory: never suspends, does no I/O.
    /// - Parameter id: `nil` for the only key of the issuer.
    func lookup(_ id: KeyID?) -> IssuerKeys.Lookup {
        switch self {
        case .url(let keys): keys.lookup(id)
        case .file(let set): Self.lookup(id, in: set)
        case .discovered(let keys, let discovery):
            keys.keys?.lookup(id) ?? (discovery.isPausing ? .unavailable : .undecided)
        }
    }

    /// Looks up a key, after a fetch if one is allowed and may find it; never returns `undecided`.
    /// - Parameter id: `nil` for the only key of the issuer.
    func resolve(_ id: KeyID?) async -> IssuerKeys.Lookup {
        switch self {
        case .url(let keys): await keys.resolve(id)
        case .file(let set): Self.lookup(id, in: set)
        case .discovered(let keys, let discovery): await keys.resolve(id, by: discovery)
        }
    }

    private static func lookup(_ id: KeyID?, in set: KeySet) -> IssuerKeys.Lookup {
        guard let id else { return set.onlyKey.map { .key($0) } ?? .unknown }
        if let key = set.keys[id] { return .key(key) }
        return set.skipped.contains { $0.id == id } ? .unusable : .unknown
    }

    /// Fetches the keys and starts refreshing them.
    func start() async {
        switch self {
        case .url(let keys): await keys.start()
        case .file: break
        case .discovered(let keys, _): await keys.start()
        }
    }

    /// Fetches the keys, whether or not they are being refreshed, and leaves that as it is.
    func fetch() async {
        let keys: IssuerKeys?
        switch self {
        case .url(let own): keys = own
        case .file: keys = nil
        case .discovered(let found, _): keys = found.keys
        }
        await keys?.start()
        await keys?.stop()
    }

    /// Stops refreshing the keys.
    func stop() async {
        switch self {
        case .url(let keys): await keys.stop()
        case .file: break
        case .discovered(let keys, _): await keys.stop()
        }
    }
}

/// The keys at the URL that the discovery document names, which may change.
final class DiscoveredKeys: Sendable {
    private struct Current {
        let url: String
        let keys: IssuerKeys
    }

    private struct State {
        var current: Current?
        var isStarted = false
    }

    private let context: ProviderContext
    private let algorithms: Set<SignatureAlgorithm>
    private let state = Lock(State())

    init(context: ProviderContext, algorithms: Set<SignatureAlgorithm>) {
        self.context = context
        self.algorithms = algorithms
    }

    /// `nil` without a document.
    var keys: IssuerKeys? { state.withLock { $0.current?.keys } }

    /// Looks up a key, after a fetch; and after discovery, if there has been none.
    func resolve(_ id: KeyID?, by discovery: Discovery) async -> IssuerKeys.Lookup {
        if keys == nil { _ = await discovery.resolve() }
        return await keys?.resolve(id) ?? .unavailable
    }

    func start() async {
        state.withLock { $0.isStarted = true }
        await keys?.start()
    }

    func stop() async {
        let keys = state.withLock { state in
            state.isStarted = false
            return state.current?.keys
        }
        await keys?.stop()
    }

    /// Uses the keys at the URL of a document. Other keys replace those in use once they have been fetched.
    func adopt(_ document: DiscoveryDocument) async {
        guard let url = document.keysURL?.text else { return }
        let (old, isStarted) = state.withLock { ($0.current, $0.isStarted) }
        guard old?.url != url else { return }
        let fresh = context.issuerKeys(at: url, allowing: algorithms)
        let mustStart = isStarted || old != nil
        if mustStart { await fresh.start() }
        guard old == nil || fresh.status.source != .none else {
            context.logger.warning("issuer has no keys at its new address", ("url", url))
            await fresh.stop()
            return
        }
        let mustStop = state.withLock { state in
            state.current = Current(url: url, keys: fresh)
            return mustStart && !state.isStarted
        }
        if mustStop { await fresh.stop() }
        guard let old else { return }
        await old.keys.stop()
        // Tokens that were accepted with the old keys are verified again.
        context.invalidateDecisions()
    }
}

extension IssuerKeys {
    /// Looks up a key in memory, or the only one.
    fileprivate func lookup(_ id: KeyID?) -> Lookup { if let id { lookup(id) } else { onlyKey() } }

    /// Looks up a key, or the only one, after a fetch if one is allowed.
    fileprivate func resolve(_ id: KeyID?) async -> Lookup {
        if let id { await resolve(id) } else { await resolveOnlyKey() }
    }
}
