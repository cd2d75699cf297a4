internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProxy

/// Somebody's sign-in, for which a code is wanted, read strictly.
///
/// `app_id` is needed. `person` is any text: the same text is the same person in every application, with the openids and the
/// unionid that follow from it. `openid`, `unionid` (`null` for none), `nickname`, `headimgurl`, `scope`, `snapshot` and
/// `lifetime` (seconds) stand for what they say. `errcode`, `delay` (milliseconds), `status` and `body` are what the exchange
/// comes to, and with `profile_` in front what the profile does. `data` changes what a mini-program's data says.
struct CodeOrder {
    private static let names =
        [
            "app_id", "person", "openid", "unionid", "nickname", "headimgurl", "scope", "snapshot", "lifetime", "data",
        ] + WeChatTrouble.members + WeChatTrouble.members.map { "profile_\($0)" }

    let app: WeChatSimulator.App
    let code: WeChatSimulator.Code
    let lifetime: Int64
    private let changes: JSONObject
    private let now: UnixTime
    private let sessionKey: [UInt8]

    init(_ request: LocalRequest, simulator: WeChatSimulator) throws(SimulatorOrder.Mistake) {
        let order = try SimulatorOrder(request, members: Self.names)
        let id = try order.requiredText("app_id")
        guard let app = simulator.app(id) else { throw SimulatorOrder.Mistake("no application has the id '\(id)'") }
        guard let sessionKey = try? RandomBytes.make(AES128CBC.blockLength) else {
            throw SimulatorOrder.Mistake("no random bytes", .unavailable)
        }
        self.app = app
        self.sessionKey = sessionKey
        now = simulator.clock.unixTime
        // Five minutes inside WeChat, ten outside.
        let usualLife: Int64 = app.variant == .officialAccount || app.variant == .miniProgram ? 300 : 600
        lifetime = try order.number("lifetime", in: -600...600, unit: " of seconds") ?? usualLife
        changes = try order.members("data") ?? [:]
        code = WeChatSimulator.Code(
            app: id, person: try Self.person(in: order, app: id),
            scope: try order.text("scope") ?? Self.usualScope(of: app.variant),
            isVirtual: try order.flag("snapshot") ?? false, end: now.advanced(bySeconds: lifetime),
            sessionKey: base64(sessionKey), trouble: try WeChatTrouble(order),
            profileTrouble: try WeChatTrouble(order, prefix: "profile_"))
    }

    /// What whoever ordered it gets.
    func answer(code name: String) -> JSONObject {
        let person = code.person
        var answer: JSONObject = [
            "code": .string(name), "app_id": .string(app.id), "variant": .string(app.variant.rawValue),
            "openid": .string(person.openID), "unionid": person.unionID.map { .string($0) } ?? .null,
            "expires_in": .integer(lifetime),
        ]
        guard app.variant == .miniProgram else { return answer }
        for member in data.members { answer[member.name] = member.value }
        return answer
    }

    private static func person(
        in order: SimulatorOrder, app: String
    ) throws(SimulatorOrder.Mistake) -> WeChatSimulator.Person {
        let name = try order.text("person") ?? "somebody"
        let unionID = order.object["unionid"] == .null ? nil : try order.text("unionid") ?? id("U", "union", name)
        return WeChatSimulator.Person(
            openID: try order.text("openid") ?? id("o", app, name), unionID: unionID,
            nickname: try order.text("nickname") ?? name,
            avatar: try order.text("headimgurl") ?? "https://thirdwx.qlogo.cn/mmopen/simulated/132")
    }

    /// 28 characters that follow from who and where.
    private static func id(_ first: String, _ place: String, _ person: String) -> String {
        first + Base64URL.encode(SHA256.digest(Array("\(place)\n\(person)".utf8))).prefix(27)
    }

    private static func usualScope(of variant: WeChatSimulator.App.Variant) -> String {
        switch variant {
        case .mobile, .officialAccount: "snsapi_userinfo"
        case .website: "snsapi_login"
        case .miniProgram: ""
        }
    }

    // MARK: A mini-program's data

    /// What `wx.getUserInfo` gives a page: the user's data, signed and encrypted.
    private var data: JSONObject {
        let shown: JSONObject = ["nickName": .string(code.person.nickname), "avatarUrl": .string(code.person.avatar)]
        let rawData = JSON.write(shown)
        var whole: JSONObject = ["openId": .string(code.person.openID)]
        whole["unionId"] = code.person.unionID.map { .string($0) }
        for member in shown.members { whole[member.name] = member.value }
        whole["watermark"] = ["timestamp": .integer(now.seconds), "appid": .string(app.id)]
        for member in changes.members { whole[member.name] = member.value }
        let iv = Array(SHA256.digest(sessionKey).prefix(AES128CBC.blockLength))
        let encrypted = AES128CBC.encrypt(JSON.write(whole), key: Secret(sessionKey), iv: iv) ?? []
        let signature = SHA1.digest(rawData + Array(code.sessionKey.utf8))
        return [
            "raw_data": .string(String(decoding: rawData, as: UTF8.self)),
            "signature": .string(hexadecimal(signature)), "encrypted_data": .string(base64(encrypted)),
            "iv": .string(base64(iv)),
        ]
    }
}

/// Base64 with padding (RFC 4648 §4).
private func base64(_ bytes: [UInt8]) -> String {
    let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
    return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}
