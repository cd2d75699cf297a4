internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// A user's ids at WeChat and the subjects derived from them.
struct WeChatUser: Sendable {
    private static let maximumIDBytes = 128
    private static let issuer = "https://api.weixin.qq.com"
    /// The lifetime of the longest-lived code, in seconds; the session decides how long the login lasts.
    private static let lifetime: Int64 = 600

    let openID: String
    /// `nil` if WeChat returned none.
    let unionID: String?

    /// - Throws: `wechat.bad_identity` for malformed ids.
    init(openID: String, unionID: String?) throws(AuthenticationError) {
        guard ([openID] + (unionID.map { [$0] } ?? [])).allSatisfy({ isToken($0.utf8, maximum: Self.maximumIDBytes) })
        else {
            throw .badIdentity
        }
        self.openID = openID
        self.unionID = unionID
    }

    /// Adds the ids of a second response.
    /// - Throws: `wechat.identity_mismatch` if they are another user's.
    func merged(with other: WeChatUser) throws(AuthenticationError) -> WeChatUser {
        guard openID.hasSameBytes(as: other.openID) else { throw .identityMismatch }
        guard let unionID else { return other }
        guard other.unionID?.hasSameBytes(as: unionID) != false else { throw .identityMismatch }
        return self
    }

    /// The result of this user's login.
    ///
    /// Unionids and openids have separate name spaces, and an openid is unique only within its app, so the subject
    /// contains kind and app. The openid is an alias of the unionid, so that an account created under the openid is
    /// found again once there is a unionid; and it decides, so that which account it is does not depend on what WeChat
    /// happens to return.
    /// - Parameter unlessKnown: the error for an openid without an account, if a unionid was due and not returned.
    func signIn(
        to app: String, profile: Profile, phone: String?, key: WeChatConfiguration.AccountKey,
        unlessKnown: AuthenticationError?, at now: UnixTime
    ) -> SignIn {
        let byOpenID = "o:\(app):\(openID)"
        let byUnionID = key == .openID ? nil : unionID.map { "u:\($0)" }
        return SignIn(
            identity: Identity(
                providerSubject: byUnionID ?? byOpenID, issuer: Self.issuer,
                claims: claims(app: app, profile: profile, phone: phone), authTime: now, issuedAt: now,
                expiresAt: now.advanced(bySeconds: Self.lifetime)),
            aliases: byUnionID == nil ? [] : [byOpenID], aliasesDecide: true, unlessKnown: unlessKnown)
    }

    private func claims(app: String, profile: Profile, phone: String?) -> JSONObject {
        var claims: JSONObject = ["openid": .string(openID), "app_id": .string(app)]
        claims["unionid"] = unionID.map { .string($0) }
        claims["nickname"] = profile.nickname.map { .string($0) }
        claims["picture"] = profile.avatar.map { .string($0) }
        claims["phone_number"] = phone.map { .string($0) }
        return claims
    }
}
