internal import MartletJSON

/// An error of WeChat's API: a code and a text, in a response with the status 200.
struct WeChatAPIError: Error, Equatable {
    let code: Int64
    let text: String

    private init(_ code: Int64, _ text: String) {
        self.code = code
        self.text = text
    }

    /// The error of a code, with WeChat's own text if that is known.
    static func of(_ code: Int64) -> WeChatAPIError {
        all.first { $0.code == code } ?? WeChatAPIError(code, "simulated error")
    }

    static let badCode = WeChatAPIError(40029, "invalid code")
    static let usedCode = WeChatAPIError(40163, "code been used")
    static let badToken = WeChatAPIError(40001, "invalid credential, access_token is invalid or not latest")
    static let expiredToken = WeChatAPIError(42001, "access_token expired")
    static let badRefreshToken = WeChatAPIError(40030, "invalid refresh_token")
    static let expiredRefreshToken = WeChatAPIError(42002, "refresh_token expired")
    static let badOpenID = WeChatAPIError(40003, "invalid openid")
    static let badAppID = WeChatAPIError(40013, "invalid appid")
    static let badSecret = WeChatAPIError(40125, "invalid appsecret")
    static let badGrantType = WeChatAPIError(40002, "invalid grant_type")
    static let notPermitted = WeChatAPIError(48001, "api unauthorized")
    static let requiresGET = WeChatAPIError(43001, "require GET method")
    static let requiresPOST = WeChatAPIError(43002, "require POST method")
    static let badJSON = WeChatAPIError(47001, "data format error")
    static let busy = WeChatAPIError(-1, "system error")

    static func missing(_ name: String) -> WeChatAPIError {
        let codes: [String: Int64] = [
            "access_token": 41001, "appid": 41002, "refresh_token": 41003, "secret": 41004, "code": 41008,
            "js_code": 41008, "openid": 41009,
        ]
        return codes[name].map { WeChatAPIError($0, "\(name) missing") } ?? badGrantType
    }

    private static let all = [
        badCode, usedCode, badToken, expiredToken, badRefreshToken, expiredRefreshToken, badOpenID, badAppID, badSecret,
        badGrantType, notPermitted, requiresGET, requiresPOST, badJSON, busy,
    ]

    var object: JSONObject {
        ["errcode": .integer(code), "errmsg": .string("\(text), rid: 6172f3c5-1a2b3c4d-5e6f7a8b")]
    }
}

/// A fault that a test injects into a call.
struct InjectedFault: Sendable {
    let delay: Duration
    /// `nil` for the normal response.
    let response: Response?

    /// The response to send instead.
    enum Response: Sendable {
        case error(Int64)
        case raw(status: Int, body: String)
    }

    static let members = ["errcode", "delay", "status", "body"]
    /// In milliseconds; below the time after which a local handler counts as failed.
    private static let maximumDelay: Int64 = 9000

    /// Reads a fault from a request.
    /// - Parameter prefix: the prefix of the members.
    /// - Returns: `nil` if there are no such members.
    init?(_ input: SimulatorRequest, prefix: String = "") throws(RequestError) {
        guard Self.members.contains(where: { input.object[prefix + $0] != nil }) else { return nil }
        let delay = try input.number("\(prefix)delay", in: 0...Self.maximumDelay, unit: " of milliseconds")
        self.delay = .milliseconds(delay ?? 0)
        let errcode = try input.number("\(prefix)errcode", in: Int64(Int32.min)...Int64(Int32.max))
        let status = try input.number("\(prefix)status", in: 200...599)
        let body = try input.text("\(prefix)body")
        if status != nil || body != nil {
            response = .raw(status: Int(status ?? 200), body: body ?? "")
        } else {
            response = errcode.map { .error($0) }
        }
    }
}
