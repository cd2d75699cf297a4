private import MartletCore
private import MartletCrypto
internal import MartletJSON
package import MartletProxy

/// The HTTP face of the pretended WeChat: its calls for signing in, and codes for whoever asks.
///
/// The calls below `/sns` are as WeChat has them: GET, parameters in the query, always 200 and `text/plain`.
/// `POST /simulator/code` takes a ``CodeOrder``, `POST /simulator/app` registers an application (`app_id`, `secret`, `variant`),
/// `POST /simulator/trouble` orders what the next calls come to (`path`, `times`, and `errcode`, `delay`, `status`, `body`),
/// `GET /simulator/calls` tells how often each path was called.
package struct WeChatSimulatorEndpoints: Sendable {
    private static let mostTroubles: Int64 = 1000

    private let simulator: WeChatSimulator

    package init(_ simulator: WeChatSimulator) { self.simulator = simulator }

    /// Answers one request; to be used as a `LocalHandler`.
    @Sendable package func answer(_ request: LocalRequest) async -> LocalResponse {
        switch request.path {
        case "/sns/oauth2/access_token": await call(request, exchange)
        case "/sns/oauth2/refresh_token": await call(request, refresh)
        case "/sns/auth": await call(request, check)
        case "/sns/userinfo": await call(request, profile)
        case "/sns/jscode2session": await call(request, openSession)
        case "/simulator/code": ordered(request, makeCode)
        case "/simulator/app": ordered(request, registerApp)
        case "/simulator/trouble": ordered(request, orderTrouble)
        case "/simulator/calls":
            .json(200, JSONObject(simulator.calls.sorted { $0.key < $1.key }.map { ($0, .integer(Int64($1))) }))
        default: .problem(.notFound, request, "there is /sns/… and /simulator/code, app, trouble and calls")
        }
    }

    // MARK: WeChat's calls

    /// What a call comes to, and what was ordered to go wrong with it.
    private typealias Outcome = (object: JSONObject, trouble: WeChatTrouble?)

    private func call(
        _ request: LocalRequest, _ body: (WeChatQuery) throws(WeChatRefusal) -> Outcome
    ) async -> LocalResponse {
        let ordered = simulator.begin(request.path)
        let outcome: Outcome
        do throws(WeChatRefusal) {
            guard request.method == "GET" else { throw .wantsGET }
            outcome = try body(WeChatQuery(request.query))
        } catch {
            outcome = (error.object, nil)
        }
        let trouble = ordered ?? outcome.trouble
        if let trouble, trouble.delay > .zero { try? await Task.sleep(for: trouble.delay) }
        return switch trouble?.answer {
        case .refusal(let code): Self.plain(200, JSON.write(WeChatRefusal.of(code).object))
        case .raw(let status, let body): Self.plain(status, Array(body.utf8))
        case nil: Self.plain(200, JSON.write(outcome.object))
        }
    }

    private static func plain(_ status: Int, _ body: [UInt8]) -> LocalResponse {
        LocalResponse(status: status, fields: [("Content-Type", "text/plain")], body: body)
    }

    private func exchange(_ query: WeChatQuery) throws(WeChatRefusal) -> Outcome {
        let code = try spend(query, named: "code", at: { $0 != .miniProgram })
        guard let (token, grant) = try? simulator.grant(code) else { throw .busy }
        var object = Self.tokens(token, grant)
        object["unionid"] = grant.person.unionID.map { .string($0) }
        if code.isVirtual { object["is_snapshotuser"] = 1 }
        return (object, code.trouble)
    }

    private func openSession(_ query: WeChatQuery) throws(WeChatRefusal) -> Outcome {
        let code = try spend(query, named: "js_code", at: { $0 == .miniProgram })
        var object: JSONObject = ["session_key": .string(code.sessionKey), "openid": .string(code.person.openID)]
        object["unionid"] = code.person.unionID.map { .string($0) }
        return (object, code.trouble)
    }

    private func spend(
        _ query: WeChatQuery, named name: String, at place: (WeChatSimulator.App.Variant) -> Bool
    ) throws(WeChatRefusal) -> WeChatSimulator.Code {
        let app = try app(query)
        guard try query.required("secret") == app.secret else { throw .badSecret }
        guard try query.required("grant_type") == "authorization_code" else { throw .badGrantType }
        let code = try query.required(name)
        guard place(app.variant) else { throw .badCode }
        return try simulator.spend(code, of: app.id)
    }

    private func app(_ query: WeChatQuery) throws(WeChatRefusal) -> WeChatSimulator.App {
        guard let app = simulator.app(try query.required("appid")) else { throw .badAppID }
        return app
    }

    private func refresh(_ query: WeChatQuery) throws(WeChatRefusal) -> Outcome {
        let app = try app(query)
        guard try query.required("grant_type") == "refresh_token" else { throw .badGrantType }
        let (token, grant) = try simulator.refresh(try query.required("refresh_token"), of: app.id)
        return (Self.tokens(token, grant), nil)
    }

    private static func tokens(_ token: String, _ grant: WeChatSimulator.Grant) -> JSONObject {
        [
            "access_token": .string(token), "expires_in": .integer(WeChatSimulator.accessLife),
            "refresh_token": .string(grant.refreshToken), "openid": .string(grant.person.openID),
            "scope": .string(grant.scope),
        ]
    }

    private func grant(_ query: WeChatQuery) throws(WeChatRefusal) -> WeChatSimulator.Grant {
        let grant = try simulator.grant(of: try query.required("access_token"))
        guard try query.required("openid") == grant.person.openID else { throw .badOpenID }
        return grant
    }

    private func check(_ query: WeChatQuery) throws(WeChatRefusal) -> Outcome {
        _ = try grant(query)
        return (["errcode": 0, "errmsg": "ok"], nil)
    }

    private func profile(_ query: WeChatQuery) throws(WeChatRefusal) -> Outcome {
        let grant = try grant(query)
        guard grant.scope.contains("snsapi_userinfo") || grant.scope.contains("snsapi_login") else {
            throw .notPermitted
        }
        var object: JSONObject = [
            "openid": .string(grant.person.openID), "nickname": .string(grant.person.nickname), "sex": 0,
            "language": "", "city": "", "province": "", "country": "", "headimgurl": .string(grant.person.avatar),
            "privilege": [],
        ]
        object["unionid"] = grant.person.unionID.map { .string($0) }
        return (object, grant.profileTrouble)
    }

    // MARK: Orders

    private func ordered(
        _ request: LocalRequest, _ body: (LocalRequest) throws(SimulatorOrder.Mistake) -> LocalResponse
    ) -> LocalResponse {
        do throws(SimulatorOrder.Mistake) { return try body(request) } catch { return error.answer(to: request) }
    }

    private func makeCode(_ request: LocalRequest) throws(SimulatorOrder.Mistake) -> LocalResponse {
        let order = try CodeOrder(request, simulator: simulator)
        guard let name = try? simulator.give(order.code) else {
            throw SimulatorOrder.Mistake("no random bytes", .unavailable)
        }
        return .json(200, order.answer(code: name))
    }

    private func registerApp(_ request: LocalRequest) throws(SimulatorOrder.Mistake) -> LocalResponse {
        let order = try SimulatorOrder(request, members: ["app_id", "secret", "variant"])
        let names = WeChatSimulator.App.Variant.allCases.map(\.rawValue).joined(separator: ", ")
        guard let variant = WeChatSimulator.App.Variant(rawValue: try order.requiredText("variant")) else {
            throw SimulatorOrder.Mistake("'variant' is none of \(names)")
        }
        simulator.register(
            .init(
                id: try order.requiredText("app_id"), secret: try order.requiredText("secret"), variant: variant))
        return .json(200, ["registered": true])
    }

    private func orderTrouble(_ request: LocalRequest) throws(SimulatorOrder.Mistake) -> LocalResponse {
        let order = try SimulatorOrder(request, members: ["path", "times"] + WeChatTrouble.members)
        let path = try order.requiredText("path")
        let times = try order.number("times", in: 1...Self.mostTroubles) ?? 1
        guard let trouble = try WeChatTrouble(order) else {
            throw SimulatorOrder.Mistake("one of \(WeChatTrouble.members.joined(separator: ", ")) must be there")
        }
        simulator.trouble(path, trouble, times: Int(times))
        return .json(200, ["ordered": .integer(times)])
    }
}

/// The parameters of a call.
struct WeChatQuery {
    private let values: [String: String]

    /// Of a repeated parameter the first counts.
    init(_ query: String) {
        var values: [String: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Self.decoded)
            guard let name = parts.first, values[name] == nil else { continue }
            values[name] = parts.count > 1 ? parts[1] : ""
        }
        self.values = values
    }

    /// A parameter that must be there.
    func required(_ name: String) throws(WeChatRefusal) -> String {
        guard let value = values[name], !value.isEmpty else { throw .missing(name) }
        return value
    }

    /// Percent-encodings and `+` as forms have them; what is no encoding stays.
    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
