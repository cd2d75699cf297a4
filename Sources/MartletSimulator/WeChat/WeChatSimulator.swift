package import MartletCore
package import MartletCrypto

/// A simulated WeChat without HTTP: applications, users, codes and tokens with the lifetimes and uses of WeChat's.
package final class WeChatSimulator: Sendable {
    /// A registered application.
    package struct App: Sendable {
        /// Where the application's users sign in.
        package enum Variant: String, Sendable, CaseIterable {
            case mobile, website
            case officialAccount = "official_account"
            case miniProgram = "mini_program"
        }

        package let id: String
        package let secret: String
        package let variant: Variant
        /// The host that codes may be sent to by a browser; `nil` for any.
        package let redirectDomain: String?

        package init(id: String, secret: String, variant: Variant, redirectDomain: String? = nil) {
            self.id = id
            self.secret = secret
            self.variant = variant
            self.redirectDomain = redirectDomain
        }
    }

    struct User: Sendable {
        var openID: String
        var unionID: String?
        var nickname: String
        var avatar: String

        /// The user of a name: the same string is the same user in every application, with ids derived from it.
        init(named name: String, of app: String) {
            openID = Self.id("o", app, name)
            unionID = Self.id("U", "union", name)
            nickname = name
            avatar = "https://thirdwx.qlogo.cn/mmopen/simulated/132"
        }

        /// An id of 28 characters, derived from the user's name and the scope of the id.
        private static func id(_ first: String, _ scope: String, _ name: String) -> String {
            first + Base64URL.encode(SHA256.digest(Array("\(scope)\n\(name)".utf8))).prefix(27)
        }
    }

    /// An issued single-use code.
    struct Code: Sendable {
        let app: String
        let user: User
        let scope: String
        let isVirtual: Bool
        let expiresAt: UnixTime
        /// Used for mini-programs only.
        let sessionKey: String
        /// Whether the response to the code has the unionid, and not the profile alone.
        var hasUnionID = true
        let fault: InjectedFault?
        let profileFault: InjectedFault?
        var isUsed = false
    }

    /// What an access token grants.
    struct Grant: Sendable {
        let app: String
        let user: User
        let scope: String
        let refreshToken: String
        let refreshExpiresAt: UnixTime
        let profileFault: InjectedFault?
        var expiresAt: UnixTime
    }

    private struct State {
        var apps: [String: App] = [:]
        var codes: [String: Code] = [:]
        var grants: [String: Grant] = [:]
        var faults: [String: [InjectedFault]] = [:]
        var calls: [String: Int] = [:]
        /// The tokens of applications themselves, by their ids.
        var accountTokens: [String: String] = [:]
        /// Codes of phone numbers that are not used yet.
        var phones: [String: (app: String, number: String)] = [:]
    }

    static let accessLifetime: Int64 = 7200
    private static let refreshLifetime: Int64 = 30 * 86_400
    /// When a table is full, it is emptied.
    private static let capacity = 50_000

    let clock: Clock
    private let state: Lock<State>

    package init(apps: [App], clock: Clock) {
        self.clock = clock
        state = Lock(State(apps: Dictionary(apps.map { ($0.id, $0) }) { $1 }))
    }

    // MARK: For tests

    /// Adds an application, or replaces its secret.
    package func register(_ app: App) { state.withLock { $0.apps[app.id] = app } }

    /// The application of an id; `nil` if it is not registered.
    func app(_ id: String) -> App? { state.withLock { $0.apps[id] } }

    /// Issues a code.
    /// - Throws: when the system has no random bytes.
    func issue(_ code: Code) throws(CryptoError) -> String {
        let name = "0" + Base64URL.encode(try RandomBytes.make(23))
        state.withLock { state in
            if state.codes.count >= Self.capacity { state.codes = [:] }
            state.codes[name] = code
        }
        return name
    }

    /// Injects a fault into the next calls of a path.
    func inject(_ fault: InjectedFault, into path: String, times: Int) {
        let all = [InjectedFault](repeating: fault, count: times)
        state.withLock { $0.faults[path, default: []] += all }
    }

    var calls: [String: Int] { state.withLock { $0.calls } }

    // MARK: For the endpoints

    /// Counts a call and dequeues the fault that was injected into it, if any.
    func begin(_ path: String) -> InjectedFault? {
        state.withLock { state in
            state.calls[path, default: 0] += 1
            guard var faults = state.faults[path], !faults.isEmpty else { return nil }
            let first = faults.removeFirst()
            state.faults[path] = faults
            return first
        }
    }

    func consume(_ name: String, of app: String) throws(WeChatAPIError) -> Code {
        let now = clock.unixTime
        let outcome: Result<Code, WeChatAPIError> = state.withLock { state in
            guard let code = state.codes[name], code.app == app else { return .failure(.badCode) }
            if code.isUsed { return .failure(.usedCode) }
            state.codes[name]?.isUsed = true
            return code.expiresAt > now ? .success(code) : .failure(.badCode)
        }
        return try outcome.get()
    }

    func grant(_ code: Code) throws(CryptoError) -> (token: String, grant: Grant) {
        let (token, refreshToken) = (try Self.makeToken(), try Self.makeToken())
        let now = clock.unixTime
        let grant = Grant(
            app: code.app, user: code.user, scope: code.scope, refreshToken: refreshToken,
            refreshExpiresAt: now.advanced(bySeconds: Self.refreshLifetime), profileFault: code.profileFault,
            expiresAt: now.advanced(bySeconds: Self.accessLifetime))
        store(grant, as: token)
        return (token, grant)
    }

    func grant(of token: String) throws(WeChatAPIError) -> Grant {
        guard let grant = state.withLock({ $0.grants[token] }) else { throw .badToken }
        guard grant.expiresAt > clock.unixTime else { throw .expiredToken }
        return grant
    }

    /// Extends a valid token, or replaces an expired one.
    func refresh(_ refreshToken: String, of app: String) throws(WeChatAPIError) -> (token: String, grant: Grant) {
        let now = clock.unixTime
        let found = state.withLock { state in
            state.grants.first { $0.value.refreshToken == refreshToken && $0.value.app == app }
        }
        guard let found, let fresh = try? Self.makeToken() else { throw .badRefreshToken }
        var grant = found.value
        guard grant.refreshExpiresAt > now else { throw .expiredRefreshToken }
        let token = grant.expiresAt > now ? found.key : fresh
        grant.expiresAt = now.advanced(bySeconds: Self.accessLifetime)
        state.withLock { $0.grants[found.key] = nil }
        store(grant, as: token)
        return (token, grant)
    }

    private func store(_ grant: Grant, as token: String) {
        state.withLock { state in
            if state.grants.count >= Self.capacity { state.grants = [:] }
            state.grants[token] = grant
        }
    }

    private static func makeToken() throws(CryptoError) -> String { "90_" + Base64URL.encode(try RandomBytes.make(48)) }
}

// MARK: - Phone numbers

extension WeChatSimulator {
    /// The token of an application: the same until another one is demanded.
    package func accountToken(of app: String, isForced: Bool) throws(CryptoError) -> String {
        let fresh = try Self.makeToken()
        return state.withLock { state in
            if !isForced, let known = state.accountTokens[app] { return known }
            state.accountTokens[app] = fresh
            return fresh
        }
    }

    func app(ofAccountToken token: String) throws(WeChatAPIError) -> String {
        guard let app = state.withLock({ $0.accountTokens.first { $0.value == token }?.key }) else { throw .badToken }
        return app
    }

    func issuePhone(_ number: String, of app: String) throws(CryptoError) -> String {
        let code = Base64URL.encode(try RandomBytes.make(24))
        state.withLock { state in
            if state.phones.count >= Self.capacity { state.phones = [:] }
            state.phones[code] = (app, number)
        }
        return code
    }

    func consumePhone(_ code: String, of app: String) throws(WeChatAPIError) -> String {
        let number = state.withLock { state -> String? in
            guard let known = state.phones[code], known.app == app else { return nil }
            state.phones[code] = nil
            return known.number
        }
        guard let number else { throw .badCode }
        return number
    }
}
