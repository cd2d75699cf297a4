internal import MartletCore
private import MartletCrypto
private import MartletJSON
internal import MartletProvider

/// The tokens of mini-programs themselves, with which WeChat is asked for phone numbers.
///
/// One instance fetches a token for all: a second fetch may invalidate the first token. The store has it until shortly
/// before it expires, sealed with a key that is derived from the app's secret.
final class AccountTokens: Sendable {
    /// A token is replaced when less of its life is left.
    private static let reserve: Int64 = 300
    private static let lifetimes: ClosedRange<Int64> = 1...7200
    /// Longer than a fetch can take.
    private static let leaseLifetime = Duration.seconds(15)
    private static let pollInterval = Duration.milliseconds(50)

    private struct Cached {
        let token: Secret
        let end: MonotonicTime
    }

    private let context: ProviderContext
    private let sleep: @Sendable (Duration) async -> Void
    private let cached = Lock<[String: Cached]>([:])

    init(context: ProviderContext, sleep: @escaping @Sendable (Duration) async -> Void) {
        self.context = context
        self.sleep = sleep
    }

    /// The token of a mini-program.
    /// - Parameter rejected: the one that WeChat does not accept any more, which is replaced.
    /// - Throws: `unavailable`.
    func token(
        of app: WeChatConfiguration.NamedApp, insteadOf rejected: Secret? = nil, _ client: WeChatClient,
        _ endpoints: WeChatEndpoints, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Secret {
        if let known = known(app, rejected) { return known }
        let store = context.store.partition(.keys, for: .gateway)
        let digest = Base64URL.encode(SHA256.digest(Array(app.id.lowercased().utf8)))
        let key = context.storeKey(sharedBy: WeChatProvider.kind, "account:\(digest)")
        let lease = context.storeKey(sharedBy: WeChatProvider.kind, "account-lease:\(digest)")
        while true {
            if let stored = try await stored(in: store, at: key, app), !Self.areEqual(stored.token, rejected) {
                cached.withLock { $0[app.id] = stored }
                return stored.token
            }
            if try await acquire(lease, in: store) {
                return try await fetch(
                    app, isForced: rejected != nil, client, endpoints, store, key, lease, until: deadline)
            }
            guard context.clock.monotonicTime + Self.pollInterval < deadline, !Task.isCancelled else { throw .noTime }
            await sleep(Self.pollInterval)
        }
    }

    private func known(_ app: WeChatConfiguration.NamedApp, _ rejected: Secret?) -> Secret? {
        let now = context.clock.monotonicTime
        return cached.withLock { cached in
            guard let known = cached[app.id] else { return nil }
            guard now < known.end, !Self.areEqual(known.token, rejected) else {
                cached[app.id] = nil
                return nil
            }
            return known.token
        }
    }

    private static func areEqual(_ token: Secret, _ other: Secret?) -> Bool {
        other.map { other in token.withBytes { left in other.withBytes { ConstantTime.areEqual(left, $0) } } } ?? false
    }

    private func acquire(_ lease: String, in store: any SharedStoring) async throws(AuthenticationError) -> Bool {
        try await AuthenticationError.fromStore(await store.setIfAbsent([1], for: lease, lifetime: Self.leaseLifetime))
    }

    /// Fetches a token and stores it; the lease ends with that.
    private func fetch(
        _ app: WeChatConfiguration.NamedApp, isForced: Bool, _ client: WeChatClient, _ endpoints: WeChatEndpoints,
        _ store: any SharedStoring, _ key: String, _ lease: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Secret {
        let granted: (token: String, seconds: Int64)
        do throws(AuthenticationError) {
            granted = try await client.send(
                .accountToken, endpoints.accountToken,
                content: .body(Self.body(app, isForced: isForced), type: "application/json"),
                for: app.clientName, until: deadline
            ) { (response) throws(WeChatResponse.ParseError) in
                (try response.required("access_token"), try response.number("expires_in"))
            }
        } catch {
            try? await store.remove(lease)
            throw error
        }
        let seconds = min(max(granted.seconds, Self.lifetimes.lowerBound), Self.lifetimes.upperBound)
        let left = Duration.seconds(max(seconds - Self.reserve, 1))
        let token = Secret(granted.token)
        cached.withLock { $0[app.id] = Cached(token: token, end: context.clock.monotonicTime + left) }
        let expiry = context.clock.unixTime.advanced(bySeconds: left.wholeSeconds)
        do {
            let object: JSONObject = ["token": .string(granted.token), "end": .integer(expiry.seconds)]
            let text = JSON.write(object)
            try await store.set(
                try AES256GCM.seal(text, with: Self.sealKey(app), context: Array(key.utf8)), for: key, lifetime: left)
        } catch {
            context.logger.warning("storing the token of an application failed", ("app", app.clientName))
        }
        try? await store.remove(lease)
        return token
    }

    private static func body(_ app: WeChatConfiguration.NamedApp, isForced: Bool) -> [UInt8] {
        let object: JSONObject = [
            "grant_type": "client_credential", "appid": .string(app.id), "secret": .string(app.secret.text),
            "force_refresh": .bool(isForced),
        ]
        return JSON.write(object)
    }

    private static func sealKey(_ app: WeChatConfiguration.NamedApp) -> Secret {
        HKDFSHA256.derive(
            from: app.secret, salt: [], purpose: Array("martlet wechat account token".utf8),
            length: AES256GCM.keyLength)
    }

    /// - Returns: `nil` if there is none, or it was sealed with another secret of the app.
    private func stored(
        in store: any SharedStoring, at key: String, _ app: WeChatConfiguration.NamedApp
    ) async throws(AuthenticationError) -> Cached? {
        guard let sealed = try await AuthenticationError.value(for: key, in: store) else { return nil }
        let limits = JSONLimits(maximumDepth: 2, maximumBytes: 4096)
        let opened = AES256GCM.open(sealed, with: Self.sealKey(app), context: Array(key.utf8))
        let object = opened?.withBytes { (try? JSON.parse($0, limits: limits))?.object }
        guard let object, let token = object["token"]?.string, let end = object["end"]?.int64 else { return nil }
        let left = end.subtractingReportingOverflow(context.clock.unixTime.seconds)
        guard !left.overflow, left.partialValue > 0 else { return nil }
        let seconds = min(left.partialValue, Self.lifetimes.upperBound)
        return Cached(token: Secret(token), end: context.clock.monotonicTime + .seconds(seconds))
    }
}
