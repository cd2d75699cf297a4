private import MartletCore
private import MartletCrypto
internal import MartletJSON
package import MartletResponder

/// The HTTP endpoints of the simulated WeChat: its calls for signing in, and codes for tests.
///
/// The calls below `/sns` are like WeChat's: GET, parameters in the query, always 200 and `text/plain`; so are
/// `/cgi-bin/stable_token` and `/wxa/business/getuserphonenumber`, which are POSTs of JSON. `POST /simulator/phone`
/// issues the code of a phone number.
/// The pages below `/connect` are for browsers. `POST /simulator/code` takes a ``CodeRequest``, `POST /simulator/app`
/// registers an application (`app_id`, `secret`, `variant`, `redirect_domain`), `POST /simulator/trouble` injects faults into the next calls (`path`, `times`, and `errcode`, `delay`,
/// `status`, `body`), `GET /simulator/calls` returns how often each path was called.
package struct WeChatSimulatorEndpoints: Sendable {
    private static let maximumFaults: Int64 = 1000

    private let simulator: WeChatSimulator

    package init(_ simulator: WeChatSimulator) { self.simulator = simulator }

    /// Handles one request; to be used as a `LocalHandler`.
    @Sendable package func handle(_ request: LocalRequest) async -> LocalResponse {
        switch request.path {
        case "/sns/oauth2/access_token": await call(request, exchange)
        case "/sns/oauth2/refresh_token": await call(request, refresh)
        case "/sns/auth": await call(request, check)
        case "/sns/userinfo": await call(request, profile)
        case "/sns/jscode2session": await call(request, openSession)
        case "/cgi-bin/stable_token": await post(request, issueAccountToken)
        case "/wxa/business/getuserphonenumber": await post(request, phoneNumber)
        case WeChatPageRequest.Page.website.rawValue: await show(request, .website)
        case WeChatPageRequest.Page.officialAccount.rawValue: await show(request, .officialAccount)
        case "/simulator/code": handling(request, makeCode)
        case "/simulator/phone": handling(request, makePhoneCode)
        case "/simulator/app": handling(request, registerApp)
        case "/simulator/trouble": handling(request, injectFault)
        case "/simulator/calls":
            .json(200, JSONObject(simulator.calls.sorted { $0.key < $1.key }.map { ($0, .integer(Int64($1))) }))
        default:
            .problem(
                .notFound, request,
                "no such path; there are /sns/…, /cgi-bin/…, /wxa/…, /connect/… and "
                    + "/simulator/trouble, code, phone, app and calls")
        }
    }

    // MARK: WeChat's calls

    /// The result of a call, and the fault to inject into its response.
    private typealias Outcome = (object: JSONObject, fault: InjectedFault?)

    private func call(
        _ request: LocalRequest, _ body: (WeChatQuery) throws(WeChatAPIError) -> Outcome
    ) async -> LocalResponse {
        await respond(to: request) { () throws(WeChatAPIError) in
            guard request.method == "GET" else { throw .requiresGET }
            return try body(WeChatQuery(request.query))
        }
    }

    /// A call whose parameters are in a JSON object, apart from the token.
    private func post(
        _ request: LocalRequest, _ body: (WeChatQuery, JSONObject) throws(WeChatAPIError) -> Outcome
    ) async -> LocalResponse {
        await respond(to: request) { () throws(WeChatAPIError) in
            guard request.method == "POST" else { throw .requiresPOST }
            let limits = JSONLimits(maximumDepth: 4, maximumBytes: 4096)
            guard let object = (try? JSON.parse(request.body, limits: limits))?.object else { throw .badJSON }
            return try body(WeChatQuery(request.query), object)
        }
    }

    private func respond(
        to request: LocalRequest, _ body: () throws(WeChatAPIError) -> Outcome
    ) async -> LocalResponse {
        let injected = simulator.begin(request.path)
        let outcome: Outcome
        do throws(WeChatAPIError) { outcome = try body() } catch {
            outcome = (error.object, nil)
        }
        let fault = injected ?? outcome.fault
        if let fault, fault.delay > .zero { try? await Task.sleep(for: fault.delay) }
        return switch fault?.response {
        case .error(let code): Self.plain(200, JSON.write(WeChatAPIError.of(code).object))
        case .raw(let status, let body): Self.plain(status, Array(body.utf8))
        case nil: Self.plain(200, JSON.write(outcome.object))
        }
    }

    /// A page for browsers, or the fault that a test has injected.
    private func show(_ request: LocalRequest, _ page: WeChatPageRequest.Page) async -> LocalResponse {
        let fault = simulator.begin(request.path)
        let response = WeChatPages(simulator: simulator, page: page).handle(request)
        guard let fault else { return response }
        if fault.delay > .zero { try? await Task.sleep(for: fault.delay) }
        return switch fault.response {
        case .error(let code): WeChatPages.failing(WeChatAPIError.of(code).text)
        case .raw(let status, let body): Self.plain(status, Array(body.utf8))
        case nil: response
        }
    }

    private static func plain(_ status: Int, _ body: [UInt8]) -> LocalResponse {
        LocalResponse(status: status, fields: [("Content-Type", "text/plain")], body: body)
    }

    private func exchange(_ query: WeChatQuery) throws(WeChatAPIError) -> Outcome {
        let code = try consume(query, named: "code", at: { $0 != .miniProgram })
        guard let (token, grant) = try? simulator.grant(code) else { throw .busy }
        var object = Self.tokens(token, grant)
        if code.hasUnionID { object["unionid"] = grant.user.unionID.map { .string($0) } }
        if code.isVirtual { object["is_snapshotuser"] = 1 }
        return (object, code.fault)
    }

    private func openSession(_ query: WeChatQuery) throws(WeChatAPIError) -> Outcome {
        let code = try consume(query, named: "js_code", at: { $0 == .miniProgram })
        var object: JSONObject = ["session_key": .string(code.sessionKey), "openid": .string(code.user.openID)]
        if code.hasUnionID { object["unionid"] = code.user.unionID.map { .string($0) } }
        return (object, code.fault)
    }

    private func issueAccountToken(_ query: WeChatQuery, _ body: JSONObject) throws(WeChatAPIError) -> Outcome {
        guard body["grant_type"] == "client_credential" else { throw .badGrantType }
        guard let app = simulator.app(body["appid"]?.string ?? "") else { throw .badAppID }
        guard body["secret"]?.string == app.secret else { throw .badSecret }
        guard let token = try? simulator.accountToken(of: app.id, isForced: body["force_refresh"] == true) else {
            throw .busy
        }
        return (["access_token": .string(token), "expires_in": .integer(WeChatSimulator.accessLifetime)], nil)
    }

    private func phoneNumber(_ query: WeChatQuery, _ body: JSONObject) throws(WeChatAPIError) -> Outcome {
        let app = try simulator.app(ofAccountToken: try query.required("access_token"))
        let number = try simulator.consumePhone(body["code"]?.string ?? "", of: app)
        let watermark: JSONObject = ["timestamp": .integer(simulator.clock.unixTime.seconds), "appid": .string(app)]
        let info: JSONObject = [
            "phoneNumber": .string(number), "purePhoneNumber": .string(number), "countryCode": "86",
            "watermark": .object(watermark),
        ]
        return (["errcode": 0, "errmsg": "ok", "phone_info": .object(info)], nil)
    }

    private func consume(
        _ query: WeChatQuery, named name: String, at isEndpoint: (WeChatSimulator.App.Variant) -> Bool
    ) throws(WeChatAPIError) -> WeChatSimulator.Code {
        let app = try app(query)
        guard try query.required("secret") == app.secret else { throw .badSecret }
        guard try query.required("grant_type") == "authorization_code" else { throw .badGrantType }
        let code = try query.required(name)
        guard isEndpoint(app.variant) else { throw .badCode }
        return try simulator.consume(code, of: app.id)
    }

    private func app(_ query: WeChatQuery) throws(WeChatAPIError) -> WeChatSimulator.App {
        guard let app = simulator.app(try query.required("appid")) else { throw .badAppID }
        return app
    }

    private func refresh(_ query: WeChatQuery) throws(WeChatAPIError) -> Outcome {
        let app = try app(query)
        guard try query.required("grant_type") == "refresh_token" else { throw .badGrantType }
        let (token, grant) = try simulator.refresh(try query.required("refresh_token"), of: app.id)
        return (Self.tokens(token, grant), nil)
    }

    private static func tokens(_ token: String, _ grant: WeChatSimulator.Grant) -> JSONObject {
        [
            "access_token": .string(token), "expires_in": .integer(WeChatSimulator.accessLifetime),
            "refresh_token": .string(grant.refreshToken), "openid": .string(grant.user.openID),
            "scope": .string(grant.scope),
        ]
    }

    private func grant(_ query: WeChatQuery) throws(WeChatAPIError) -> WeChatSimulator.Grant {
        let grant = try simulator.grant(of: try query.required("access_token"))
        guard try query.required("openid") == grant.user.openID else { throw .badOpenID }
        return grant
    }

    private func check(_ query: WeChatQuery) throws(WeChatAPIError) -> Outcome {
        _ = try grant(query)
        return (["errcode": 0, "errmsg": "ok"], nil)
    }

    private func profile(_ query: WeChatQuery) throws(WeChatAPIError) -> Outcome {
        let grant = try grant(query)
        guard grant.scope.contains("snsapi_userinfo") || grant.scope.contains("snsapi_login") else {
            throw .notPermitted
        }
        var object: JSONObject = [
            "openid": .string(grant.user.openID), "nickname": .string(grant.user.nickname), "sex": 0,
            "language": "", "city": "", "province": "", "country": "", "headimgurl": .string(grant.user.avatar),
            "privilege": [],
        ]
        object["unionid"] = grant.user.unionID.map { .string($0) }
        return (object, grant.profileFault)
    }

    // MARK: Simulator endpoints

    private func makeCode(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let codeRequest = try CodeRequest(request, simulator: simulator)
        guard let name = try? simulator.issue(codeRequest.code) else {
            throw RequestError("no random bytes", .unavailable)
        }
        return .json(200, codeRequest.response(code: name))
    }

    private func makePhoneCode(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["app_id", "number"])
        guard let app = simulator.app(try input.requiredText("app_id")), app.variant == .miniProgram else {
            throw RequestError("'app_id' is not that of a mini-program")
        }
        guard let code = try? simulator.issuePhone(try input.text("number") ?? "13800000000", of: app.id) else {
            throw RequestError("no random bytes", .unavailable)
        }
        return .json(200, ["phone_code": .string(code)])
    }

    private func registerApp(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["app_id", "secret", "variant", "redirect_domain"])
        let names = WeChatSimulator.App.Variant.allCases.map(\.rawValue).joined(separator: ", ")
        guard let variant = WeChatSimulator.App.Variant(rawValue: try input.requiredText("variant")) else {
            throw RequestError("'variant' is not one of \(names)")
        }
        simulator.register(
            .init(
                id: try input.requiredText("app_id"), secret: try input.requiredText("secret"), variant: variant,
                redirectDomain: try input.text("redirect_domain")))
        return .json(200, ["registered": true])
    }

    private func injectFault(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["path", "times"] + InjectedFault.members)
        let path = try input.requiredText("path")
        let times = try input.number("times", in: 1...Self.maximumFaults) ?? 1
        guard let fault = try InjectedFault(input) else {
            throw RequestError("one of \(InjectedFault.members.joined(separator: ", ")) is required")
        }
        simulator.inject(fault, into: path, times: Int(times))
        return .json(200, ["ordered": .integer(times)])
    }
}

struct WeChatQuery {
    private let values: [String: String]

    /// Of a repeated parameter the first value is used.
    init(_ query: String) {
        var values: [String: String] = [:]
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Self.decoded)
            guard let name = parts.first, values[name] == nil else { continue }
            values[name] = parts.count > 1 ? parts[1] : ""
        }
        self.values = values
    }

    func required(_ name: String) throws(WeChatAPIError) -> String {
        guard let value = values[name], !value.isEmpty else { throw .missing(name) }
        return value
    }

    /// Decodes percent-encoding and `+` like a form; invalid escapes stay as they are.
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
