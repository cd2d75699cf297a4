internal import MartletJSON

/// What WeChat says when it refuses: a code and a text, in an answer whose status is 200.
struct WeChatRefusal: Error, Equatable {
    let code: Int64
    let text: String

    private init(_ code: Int64, _ text: String) {
        self.code = code
        self.text = text
    }

    /// Any code, by WeChat's own text where that is known.
    static func of(_ code: Int64) -> WeChatRefusal {
        all.first { $0.code == code } ?? WeChatRefusal(code, "simulated error")
    }

    static let badCode = WeChatRefusal(40029, "invalid code")
    static let usedCode = WeChatRefusal(40163, "code been used")
    static let badToken = WeChatRefusal(40001, "invalid credential, access_token is invalid or not latest")
    static let expiredToken = WeChatRefusal(42001, "access_token expired")
    static let badRefreshToken = WeChatRefusal(40030, "invalid refresh_token")
    static let expiredRefreshToken = WeChatRefusal(42002, "refresh_token expired")
    static let badOpenID = WeChatRefusal(40003, "invalid openid")
    static let badAppID = WeChatRefusal(40013, "invalid appid")
    static let badSecret = WeChatRefusal(40125, "invalid appsecret")
    static let badGrantType = WeChatRefusal(40002, "invalid grant_type")
    static let notPermitted = WeChatRefusal(48001, "api unauthorized")
    static let wantsGET = WeChatRefusal(43001, "require GET method")
    static let busy = WeChatRefusal(-1, "system error")

    /// By the parameter that is missing.
    static func missing(_ name: String) -> WeChatRefusal {
        let codes: [String: Int64] = [
            "access_token": 41001, "appid": 41002, "refresh_token": 41003, "secret": 41004, "code": 41008,
            "js_code": 41008, "openid": 41009,
        ]
        return codes[name].map { WeChatRefusal($0, "\(name) missing") } ?? badGrantType
    }

    private static let all = [
        badCode, usedCode, badToken, expiredToken, badRefreshToken, expiredRefreshToken, badOpenID, badAppID, badSecret,
        badGrantType, notPermitted, wantsGET, busy,
    ]

    var object: JSONObject {
        ["errcode": .integer(code), "errmsg": .string("\(text), rid: 6172f3c5-1a2b3c4d-5e6f7a8b")]
    }
}

/// What goes wrong with a call because somebody has ordered it.
struct WeChatTrouble: Sendable {
    /// Before anything is answered.
    let delay: Duration
    /// `nil` for what would be answered anyway.
    let answer: Answer?

    /// What is answered instead.
    enum Answer: Sendable {
        case refusal(Int64)
        case raw(status: Int, body: String)
    }

    static let members = ["errcode", "delay", "status", "body"]
    /// A call must end before whoever answers it is thought to have died.
    private static let longestDelay: Int64 = 9000

    /// Reads what was ordered.
    /// - Parameter prefix: what the members begin with.
    /// - Returns: `nil` if no member is there.
    init?(_ order: SimulatorOrder, prefix: String = "") throws(SimulatorOrder.Mistake) {
        guard Self.members.contains(where: { order.object[prefix + $0] != nil }) else { return nil }
        let delay = try order.number("\(prefix)delay", in: 0...Self.longestDelay, unit: " of milliseconds")
        self.delay = .milliseconds(delay ?? 0)
        let errcode = try order.number("\(prefix)errcode", in: Int64(Int32.min)...Int64(Int32.max))
        let status = try order.number("\(prefix)status", in: 200...599)
        let body = try order.text("\(prefix)body")
        if status != nil || body != nil {
            answer = .raw(status: Int(status ?? 200), body: body ?? "")
        } else {
            answer = errcode.map { .refusal($0) }
        }
    }
}
