internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// One login at WeChat: sends the code and verifies the responses.
struct CodeExchange: Sendable {
    /// How long a digest of encrypted data is stored against replay: longer than the data is fresh.
    private static let replayWindow = Duration.seconds(900)

    let configuration: WeChatConfiguration
    let endpoints: WeChatEndpoints
    let client: WeChatClient
    let tokens: AccountTokens
    let context: ProviderContext
    let now: UnixTime
    let deadline: MonotonicTime

    /// Sends the code; to be called once per code.
    func run(_ request: LoginRequest) async throws(AuthenticationError) -> SignIn {
        switch request.app.variant {
        case .miniProgram: try await openMiniProgram(request)
        case .mobile, .website, .officialAccount: try await authorize(request)
        }
    }

    private func url(_ request: LoginRequest) -> String { endpoints.exchange(request.code.text, of: request.app) }

    // MARK: Apps and pages

    /// The used members of the token response for an app or a page.
    private struct TokenResponse {
        let token: String
        let openID: String
        let unionID: String?
        let scopes: [String]
        let isVirtual: Bool

        init(_ response: WeChatResponse) throws(WeChatResponse.ParseError) {
            token = try response.required("access_token")
            openID = try response.required("openid")
            unionID = try response.optional("unionid")
            scopes = (try response.optional("scope") ?? "").split(separator: ",").map(String.init)
            isVirtual = response.isSet("is_snapshotuser")
        }
    }

    private func authorize(_ request: LoginRequest) async throws(AuthenticationError) -> SignIn {
        let name = request.app.clientName
        let granted = try await client.send(.exchange, url(request), for: name, until: deadline, TokenResponse.init)
        guard !granted.isVirtual else { throw .virtualUser }
        let hasProfile = try checkScopes(granted.scopes, of: request.app.variant)
        var user = try WeChatUser(openID: granted.openID, unionID: granted.unionID)
        var profile = Profile.empty
        var profileError: AuthenticationError?
        if hasProfile, configuration.fetchesProfile {
            do throws(AuthenticationError) {
                (user, profile) = try await self.profile(of: user, token: granted.token, name)
            } catch {
                // The user is authenticated; the login goes on without a profile while WeChat is unavailable.
                guard error.disposition == .unavailable else { throw error }
                profileError = error
            }
        }
        return try signIn(user, request, profile, phone: nil, profileError: profileError)
    }

    /// Whether the scopes allow a profile to be fetched.
    /// - Throws: `wechat.scope_missing` when the variant's scope is missing.
    private func checkScopes(_ scopes: [String], of variant: WeChatApp.Variant) throws(AuthenticationError) -> Bool {
        let required = variant == .website ? "snsapi_login" : "snsapi_userinfo"
        if scopes.contains(where: required.hasSameBytes) { return true }
        guard variant == .officialAccount, configuration.allowsBaseScope, scopes.contains("snsapi_base") else {
            throw .scopeMissing
        }
        return false
    }

    private func profile(
        of user: WeChatUser, token: String, _ app: String
    ) async throws(AuthenticationError) -> (WeChatUser, Profile) {
        let url = endpoints.profile(token: token, openID: user.openID, language: configuration.language)
        let found = try await client.send(.userinfo, url, for: app, until: deadline) {
            (response) throws(WeChatResponse.ParseError) in
            (
                openID: try response.required("openid"), unionID: try response.optional("unionid"),
                profile: Profile(
                    nickname: try response.optional("nickname"), avatar: try response.optional("headimgurl"))
            )
        }
        return (try user.merged(with: WeChatUser(openID: found.openID, unionID: found.unionID)), found.profile)
    }

    // MARK: Mini-programs

    private func openMiniProgram(_ request: LoginRequest) async throws(AuthenticationError) -> SignIn {
        let name = request.app.clientName
        let session = try await client.send(.jscode2session, url(request), for: name, until: deadline) {
            (response) throws(WeChatResponse.ParseError) in
            (
                openID: try response.required("openid"), unionID: try response.optional("unionid"),
                key: try response.required("session_key")
            )
        }
        let user = try WeChatUser(openID: session.openID, unionID: session.unionID)
        guard let data = request.data else {
            return try signIn(user, request, .empty, phone: try await phone(of: request), profileError: nil)
        }
        let check = DataCheck(
            sessionKey: session.key, openID: user.openID, unionID: user.unionID, appID: request.app.id, now: now)
        let userData = check?.userData(in: data)
        let isNew = try await isNew(data, of: request)
        guard let userData, isNew else { throw .badData }
        let phone = try await phone(of: request) ?? userData.phone
        return try signIn(
            user, request, Profile(nickname: userData.nickname, avatar: userData.avatar), phone: phone,
            profileError: nil)
    }

    /// The number of a phone code, which is sent when the user is known: each success is charged.
    private func phone(of request: LoginRequest) async throws(AuthenticationError) -> String? {
        guard let code = request.phoneCode else { return nil }
        let numbers = PhoneNumbers(tokens: tokens, client: client, endpoints: endpoints, deadline: deadline)
        return try await numbers.number(for: code, of: request.app)
    }

    /// Whether encrypted data is seen for the first time.
    private func isNew(_ data: MiniProgramData, of request: LoginRequest) async throws(AuthenticationError) -> Bool {
        guard let encrypted = data.encrypted else { return true }
        let bytes = encrypted.text.withBytes { $0 } + [0] + encrypted.vector.withBytes { $0 }
        let digest = Base64URL.encode(SHA256.digest(Array(request.app.id.utf8) + [0] + bytes))
        return try await AuthenticationError.fromStore(
            await context.store.partition(.codes, for: request.owner).setIfAbsent(
                [1], for: context.storeKey("data:\(digest)"), lifetime: Self.replayWindow))
    }

    // MARK: Result

    private func signIn(
        _ user: WeChatUser, _ request: LoginRequest, _ profile: Profile, phone: String?,
        profileError: AuthenticationError?
    ) throws(AuthenticationError) -> SignIn {
        if configuration.accountKey == .unionIDRequired, user.unionID == nil {
            // The profile might have contained the unionid: a failure to fetch it is an outage, not a rejection.
            throw profileError ?? .unionIDMissing
        }
        // Without the unionid that was due, the user may have an account that the openid does not lead to.
        let isUncertain = configuration.accountKey == .unionIDPreferred && user.unionID == nil
        return user.signIn(
            to: request.app.id, profile: profile, phone: phone, key: configuration.accountKey,
            unlessKnown: isUncertain ? profileError : nil, at: now)
    }
}
