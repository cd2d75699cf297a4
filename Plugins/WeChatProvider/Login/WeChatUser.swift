internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// Who WeChat says somebody is, and under which subjects that person is filed.
struct WeChatUser: Sendable {
    private static let maximumIDBytes = 128
    private static let issuer = "https://api.weixin.qq.com"
    /// As long as the longest-lived code; a login's identity ends with its session, not here.
    private static let life: Int64 = 600

    let openID: String
    /// `nil` where WeChat tells none.
    let unionID: String?

    /// - Throws: `wechat.bad_identity` for ids that are not written as such.
    init(openID: String, unionID: String?) throws(AuthenticationError) {
        guard ([openID] + (unionID.map { [$0] } ?? [])).allSatisfy({ isToken($0.utf8, most: Self.maximumIDBytes) })
        else {
            throw .badIdentity
        }
        self.openID = openID
        self.unionID = unionID
    }

    /// The same person as a second answer tells it.
    /// - Throws: `wechat.identity_mismatch` if that is somebody else.
    func joined(with other: WeChatUser) throws(AuthenticationError) -> WeChatUser {
        guard openID.hasSameBytes(as: other.openID) else { throw .identityMismatch }
        guard let unionID else { return other }
        guard other.unionID?.hasSameBytes(as: unionID) != false else { throw .identityMismatch }
        return self
    }

    /// The login of this person.
    ///
    /// Unionid and openid have name spaces of their own, and an openid says nothing without its app: so both are in the
    /// subject. The other one is an alias, so that who is known by the openid alone is found again once there is a unionid.
    func signIn(
        to app: String, profile: Profile, phone: String?, key: WeChatConfiguration.AccountKey, at now: UnixTime
    ) -> SignIn {
        let byOpenID = "o:\(app):\(openID)"
        let byUnionID = key == .openID ? nil : unionID.map { "u:\($0)" }
        return SignIn(
            identity: Identity(
                providerSubject: byUnionID ?? byOpenID, issuer: Self.issuer,
                claims: claims(app: app, profile: profile, phone: phone), authTime: now, issuedAt: now,
                expiresAt: now.advanced(bySeconds: Self.life)),
            aliases: byUnionID == nil ? [] : [byOpenID])
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
