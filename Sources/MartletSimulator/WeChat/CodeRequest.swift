internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletResponder

/// A request for a code of a simulated login, parsed strictly.
///
/// `app_id` is required. `person` is any string: the same string is the same user in every application, with ids
/// derived from it. `openid`, `unionid` (`null` for none), `nickname`, `headimgurl`, `scope`, `snapshot` and `lifetime`
/// (seconds) set the values of those names; with `token_unionid: false` the unionid comes
/// with the profile alone. `errcode`, `delay` (milliseconds), `status` and `body` inject a fault into
/// the exchange, and with the prefix `profile_` into the profile call. `data` changes members of a mini-program's data.
struct CodeRequest {
    private static let names =
        [
            "app_id", "person", "openid", "unionid", "nickname", "headimgurl", "scope", "snapshot", "lifetime", "data",
            "token_unionid",
        ] + InjectedFault.members + InjectedFault.members.map { "profile_\($0)" }

    let app: WeChatSimulator.App
    let code: WeChatSimulator.Code
    let lifetime: Int64
    private let changes: JSONObject
    private let now: UnixTime
    private let sessionKey: [UInt8]

    init(_ request: LocalRequest, simulator: WeChatSimulator) throws(RequestError) {
        let input = try SimulatorRequest(request, members: Self.names)
        let id = try input.requiredText("app_id")
        guard let app = simulator.app(id) else {
            throw RequestError("no application with the id '\(id)'")
        }
        guard let sessionKey = try? RandomBytes.make(AES128CBC.blockLength) else {
            throw RequestError("no random bytes", .unavailable)
        }
        self.app = app
        self.sessionKey = sessionKey
        now = simulator.clock.unixTime
        // Five minutes inside WeChat, ten outside.
        let standardLifetime: Int64 = app.variant == .officialAccount || app.variant == .miniProgram ? 300 : 600
        lifetime = try input.number("lifetime", in: -600...600, unit: " of seconds") ?? standardLifetime
        changes = try input.members("data") ?? [:]
        code = WeChatSimulator.Code(
            app: id, user: try Self.user(in: input, app: id),
            scope: try input.text("scope") ?? Self.standardScope(of: app.variant),
            isVirtual: try input.flag("snapshot") ?? false, expiresAt: now.advanced(bySeconds: lifetime),
            sessionKey: Base64.encode(sessionKey, padding: .required),
            hasUnionID: try input.flag("token_unionid") ?? true,
            fault: try InjectedFault(input),
            profileFault: try InjectedFault(input, prefix: "profile_"))
    }

    func response(code name: String) -> JSONObject {
        let user = code.user
        var response: JSONObject = [
            "code": .string(name), "app_id": .string(app.id), "variant": .string(app.variant.rawValue),
            "openid": .string(user.openID), "unionid": user.unionID.map { .string($0) } ?? .null,
            "expires_in": .integer(lifetime),
        ]
        guard app.variant == .miniProgram else { return response }
        for member in data.members { response[member.name] = member.value }
        return response
    }

    private static func user(in input: SimulatorRequest, app: String) throws(RequestError) -> WeChatSimulator.User {
        var user = WeChatSimulator.User(named: try input.text("person") ?? "somebody", of: app)
        if input.object["unionid"] == .null {
            user.unionID = nil
        } else if let unionID = try input.text("unionid") {
            user.unionID = unionID
        }
        user.openID = try input.text("openid") ?? user.openID
        user.nickname = try input.text("nickname") ?? user.nickname
        user.avatar = try input.text("headimgurl") ?? user.avatar
        return user
    }

    private static func standardScope(of variant: WeChatSimulator.App.Variant) -> String {
        switch variant {
        case .mobile, .officialAccount: "snsapi_userinfo"
        case .website: "snsapi_login"
        case .miniProgram: ""
        }
    }

    // MARK: A mini-program's data

    /// The result of `wx.getUserInfo`: the user's data, signed and encrypted.
    private var data: JSONObject {
        let open: JSONObject = ["nickName": .string(code.user.nickname), "avatarUrl": .string(code.user.avatar)]
        let rawData = JSON.write(open)
        var whole: JSONObject = ["openId": .string(code.user.openID)]
        whole["unionId"] = code.user.unionID.map { .string($0) }
        for member in open.members { whole[member.name] = member.value }
        whole["watermark"] = ["timestamp": .integer(now.seconds), "appid": .string(app.id)]
        for member in changes.members { whole[member.name] = member.value }
        let iv = Array(SHA256.digest(sessionKey).prefix(AES128CBC.blockLength))
        let encrypted = AES128CBC.encrypt(JSON.write(whole), key: Secret(sessionKey), iv: iv) ?? []
        let signature = SHA1.digest(rawData + Array(code.sessionKey.utf8))
        return [
            "raw_data": .string(String(decoding: rawData, as: UTF8.self)),
            "signature": .string(Hexadecimal.text(signature)),
            "encrypted_data": .string(Base64.encode(encrypted, padding: .required)),
            "iv": .string(Base64.encode(iv, padding: .required)),
        ]
    }
}
