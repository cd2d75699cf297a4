package import MartletCore
internal import MartletCrypto
private import Synchronization

/// A pretended WeChat: applications, people, codes and tokens, good for as long and as often as WeChat's are.
///
/// No HTTP.
package final class WeChatSimulator: Sendable {
    /// An application, as its owner has registered it.
    package struct App: Sendable {
        /// Where its users sign in.
        package enum Variant: String, Sendable, CaseIterable {
            case mobile, website
            case officialAccount = "official_account"
            case miniProgram = "mini_program"
        }

        package let id: String
        package let secret: String
        package let variant: Variant

        package init(id: String, secret: String, variant: Variant) {
            self.id = id
            self.secret = secret
            self.variant = variant
        }
    }

    /// Somebody who uses an application.
    struct Person: Sendable {
        var openID: String
        var unionID: String?
        var nickname: String
        var avatar: String
    }

    /// What was given out to be exchanged once.
    struct Code: Sendable {
        let app: String
        let person: Person
        let scope: String
        let isVirtual: Bool
        let end: UnixTime
        /// Of a mini-program.
        let sessionKey: String
        let trouble: WeChatTrouble?
        let profileTrouble: WeChatTrouble?
        var isUsed = false
    }

    /// What an access token stands for.
    struct Grant: Sendable {
        let app: String
        let person: Person
        let scope: String
        let refreshToken: String
        let refreshEnd: UnixTime
        let profileTrouble: WeChatTrouble?
        var end: UnixTime
    }

    private struct State {
        var apps: [String: App] = [:]
        var codes: [String: Code] = [:]
        var grants: [String: Grant] = [:]
        var troubles: [String: [WeChatTrouble]] = [:]
        var calls: [String: Int] = [:]
    }

    static let accessLife: Int64 = 7200
    private static let refreshLife: Int64 = 30 * 86_400
    /// More than this is forgotten all at once: nobody tests with so many.
    private static let mostKept = 50_000

    let clock: Clock
    private let state: Mutex<State>

    package init(apps: [App], clock: Clock) {
        self.clock = clock
        state = Mutex(State(apps: Dictionary(apps.map { ($0.id, $0) }) { $1 }))
    }

    // MARK: For whoever tests

    /// Adds an application, or gives one another secret.
    package func register(_ app: App) { state.withLock { $0.apps[app.id] = app } }

    /// The application of an id; `nil` if nobody has registered it.
    func app(_ id: String) -> App? { state.withLock { $0.apps[id] } }

    /// Makes a code of one's own.
    /// - Throws: when the system has no random bytes.
    func give(_ code: Code) throws(CryptoError) -> String {
        let name = "0" + Base64URL.encode(try RandomBytes.make(23))
        state.withLock { state in
            if state.codes.count >= Self.mostKept { state.codes = [:] }
            state.codes[name] = code
        }
        return name
    }

    /// Sets what the next calls of a path come to.
    func trouble(_ path: String, _ trouble: WeChatTrouble, times: Int) {
        let all = [WeChatTrouble](repeating: trouble, count: times)
        state.withLock { $0.troubles[path, default: []] += all }
    }

    /// How often each path was called.
    var calls: [String: Int] { state.withLock { $0.calls } }

    // MARK: For the endpoints

    /// Counts a call and takes the trouble that was ordered for it, if any.
    func begin(_ path: String) -> WeChatTrouble? {
        state.withLock { state in
            state.calls[path, default: 0] += 1
            guard var troubles = state.troubles[path], !troubles.isEmpty else { return nil }
            let first = troubles.removeFirst()
            state.troubles[path] = troubles
            return first
        }
    }

    /// Uses a code up.
    func spend(_ name: String, of app: String) throws(WeChatRefusal) -> Code {
        let now = clock.unixTime
        let outcome: Result<Code, WeChatRefusal> = state.withLock { state in
            guard let code = state.codes[name], code.app == app else { return .failure(.badCode) }
            if code.isUsed { return .failure(.usedCode) }
            state.codes[name]?.isUsed = true
            return code.end > now ? .success(code) : .failure(.badCode)
        }
        return try outcome.get()
    }

    /// Gives out an access token and a refresh token.
    func grant(_ code: Code) throws(CryptoError) -> (token: String, grant: Grant) {
        let (token, refreshToken) = (try Self.makeToken(), try Self.makeToken())
        let now = clock.unixTime
        let grant = Grant(
            app: code.app, person: code.person, scope: code.scope, refreshToken: refreshToken,
            refreshEnd: now.advanced(bySeconds: Self.refreshLife), profileTrouble: code.profileTrouble,
            end: now.advanced(bySeconds: Self.accessLife))
        keep(grant, as: token)
        return (token, grant)
    }

    /// What an access token stands for.
    func grant(of token: String) throws(WeChatRefusal) -> Grant {
        guard let grant = state.withLock({ $0.grants[token] }) else { throw .badToken }
        guard grant.end > clock.unixTime else { throw .expiredToken }
        return grant
    }

    /// Prolongs a token that lives, or replaces one that has ended.
    func refresh(_ refreshToken: String, of app: String) throws(WeChatRefusal) -> (token: String, grant: Grant) {
        let now = clock.unixTime
        let found = state.withLock { state in
            state.grants.first { $0.value.refreshToken == refreshToken && $0.value.app == app }
        }
        guard let found, let fresh = try? Self.makeToken() else { throw .badRefreshToken }
        var grant = found.value
        guard grant.refreshEnd > now else { throw .expiredRefreshToken }
        let token = grant.end > now ? found.key : fresh
        grant.end = now.advanced(bySeconds: Self.accessLife)
        state.withLock { $0.grants[found.key] = nil }
        keep(grant, as: token)
        return (token, grant)
    }

    private func keep(_ grant: Grant, as token: String) {
        state.withLock { state in
            if state.grants.count >= Self.mostKept { state.grants = [:] }
            state.grants[token] = grant
        }
    }

    private static func makeToken() throws(CryptoError) -> String { "90_" + Base64URL.encode(try RandomBytes.make(48)) }
}
