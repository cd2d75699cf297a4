internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// One login at WeChat: the code goes out, and what comes back is checked.
struct Exchange: Sendable {
    /// How long encrypted data is remembered: longer than it is fresh.
    private static let dataMemory = Duration.seconds(900)

    let configuration: WeChatConfiguration
    let endpoints: WeChatEndpoints
    let client: WeChatClient
    let context: ProviderContext
    let now: UnixTime
    let deadline: MonotonicTime

    /// Sends the code; to be called once in its life.
    func run(_ post: LoginPost) async throws(AuthenticationError) -> SignIn {
        switch post.app.variant {
        case .miniProgram: try await openMiniProgram(post)
        case .mobile, .website, .officialAccount: try await authorize(post)
        }
    }

    private func url(_ post: LoginPost) -> String { post.code.withBytes { endpoints.exchange($0, of: post.app) } }

    // MARK: Apps and pages

    /// What an exchange of an app or a page gives, as far as it is used.
    private struct Grant {
        let token: String
        let openID: String
        let unionID: String?
        let scopes: [String]
        let isVirtual: Bool

        init(_ answer: WeChatAnswer) throws(WeChatAnswer.Unreadable) {
            token = try answer.required("access_token")
            openID = try answer.required("openid")
            unionID = try answer.optional("unionid")
            scopes = (try answer.optional("scope") ?? "").split(separator: ",").map(String.init)
            isVirtual = answer.isMarked("is_snapshotuser")
        }
    }

    private func authorize(_ post: LoginPost) async throws(AuthenticationError) -> SignIn {
        let name = post.app.clientName
        let grant = try await client.ask(.exchange, url(post), for: name, until: deadline, Grant.init)
        guard !grant.isVirtual else { throw .virtualUser }
        let hasProfile = try checkScopes(grant.scopes, of: post.app.variant)
        var user = try WeChatUser(openID: grant.openID, unionID: grant.unionID)
        var profile = Profile.nothing
        var passingFailure: AuthenticationError?
        if hasProfile, configuration.asksForProfile {
            do throws(AuthenticationError) {
                (user, profile) = try await self.profile(of: user, token: grant.token, name)
            } catch {
                // Who it is has been proved; what WeChat cannot say right now is left out.
                guard error.disposition == .unavailable else { throw error }
                passingFailure = error
            }
        }
        return try signIn(user, post, profile, phone: nil, passingFailure: passingFailure)
    }

    /// Whether the scopes allow a profile to be asked for.
    /// - Throws: `wechat.scope_missing` when they are not those that the variant asks for.
    private func checkScopes(
        _ scopes: [String], of variant: WeChatApp.Variant
    ) throws(AuthenticationError) -> Bool {
        let wanted = variant == .website ? "snsapi_login" : "snsapi_userinfo"
        if scopes.contains(where: wanted.hasSameBytes) { return true }
        guard variant == .officialAccount, configuration.allowsBaseScope, scopes.contains("snsapi_base") else {
            throw .scopeMissing
        }
        return false
    }

    private func profile(
        of user: WeChatUser, token: String, _ app: String
    ) async throws(AuthenticationError) -> (WeChatUser, Profile) {
        let url = endpoints.profile(token: token, openID: user.openID, language: configuration.language)
        let found = try await client.ask(.userinfo, url, for: app, until: deadline) {
            (answer) throws(WeChatAnswer.Unreadable) in
            (
                openID: try answer.required("openid"), unionID: try answer.optional("unionid"),
                profile: Profile(
                    nickname: try answer.optional("nickname"), avatar: try answer.optional("headimgurl"))
            )
        }
        return (try user.joined(with: WeChatUser(openID: found.openID, unionID: found.unionID)), found.profile)
    }

    // MARK: Mini-programs

    private func openMiniProgram(_ post: LoginPost) async throws(AuthenticationError) -> SignIn {
        let session = try await client.ask(.jscode2session, url(post), for: post.app.clientName, until: deadline) {
            (answer) throws(WeChatAnswer.Unreadable) in
            (
                openID: try answer.required("openid"), unionID: try answer.optional("unionid"),
                key: try answer.required("session_key")
            )
        }
        let user = try WeChatUser(openID: session.openID, unionID: session.unionID)
        guard let data = post.data else { return try signIn(user, post, .nothing, phone: nil, passingFailure: nil) }
        let check = DataCheck(
            sessionKey: session.key, openID: user.openID, unionID: user.unionID, appID: post.app.id, now: now)
        let findings = check?.findings(in: data)
        let isNew = try await isNew(data, of: post)
        guard let findings, isNew else { throw .badData }
        return try signIn(
            user, post, Profile(nickname: findings.nickname, avatar: findings.avatar), phone: findings.phone,
            passingFailure: nil)
    }

    /// Whether encrypted data comes for the first time.
    private func isNew(_ data: MiniProgramData, of post: LoginPost) async throws(AuthenticationError) -> Bool {
        guard let encrypted = data.encrypted else { return true }
        let bytes = encrypted.text.withBytes { $0 } + [0] + encrypted.vector.withBytes { $0 }
        let digest = Base64URL.encode(SHA256.digest(Array(post.app.id.utf8) + [0] + bytes))
        do throws(StoreError) {
            return try await context.store.partition(.codes).setIfAbsent(
                [1], for: context.storeKey("data:\(digest)"), lifetime: Self.dataMemory)
        } catch {
            throw .storeUnavailable(error)
        }
    }

    // MARK: The end

    private func signIn(
        _ user: WeChatUser, _ post: LoginPost, _ profile: Profile, phone: String?,
        passingFailure: AuthenticationError?
    ) throws(AuthenticationError) -> SignIn {
        if configuration.accountKey == .unionIDRequired, user.unionID == nil {
            // Where the profile could not be had, it might have told the unionid: that is an outage, not a verdict.
            throw passingFailure ?? .unionIDMissing
        }
        return user.signIn(
            to: post.app.id, profile: profile, phone: phone, key: configuration.accountKey, at: now)
    }
}
