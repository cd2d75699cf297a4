import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletSimulator
import MartletTesting
import Testing
import WeChatProvider

/// The simulated WeChat with an application of each variant, and a manual clock.
struct WeChatStage {
    static let apps: [WeChatSimulator.App] = [
        .init(id: "wx0000000000000001", secret: "s1", variant: .mobile),
        .init(id: "wx0000000000000002", secret: "s2", variant: .website),
        .init(id: "wx0000000000000003", secret: "s3", variant: .officialAccount),
        .init(id: "wx0000000000000004", secret: "s4", variant: .miniProgram),
    ]

    let simulator: WeChatSimulator
    let endpoints: WeChatSimulatorEndpoints
    private let seconds = Box<Int64>(1_700_000_000)

    init() {
        let clock = Self.clock(seconds)
        simulator = WeChatSimulator(apps: Self.apps, clock: clock)
        endpoints = WeChatSimulatorEndpoints(simulator)
    }

    private static func clock(_ seconds: Box<Int64>) -> Clock {
        Clock(
            unixTime: { UnixTime(seconds: seconds.value) },
            monotonicTime: { MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
    }

    func advance(_ span: Int64) { seconds.withLock { $0 += span } }

    // MARK: - Over "HTTP"

    func ask(
        _ method: String, _ target: String, _ body: String = "", type: String? = "application/json"
    ) async -> LocalResponse {
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let bytes = Array(body.utf8)
        return await endpoints.handle(
            LocalRequest(
                method: method, path: parts[0], query: parts.count > 1 ? parts[1] : "",
                fields: type.map { [("Content-Type", $0)] } ?? [], body: bytes, bodyBytes: bytes.count,
                client: "127.0.0.1", requestID: "r1"))
    }

    func object(_ method: String, _ target: String, _ body: String = "") async throws -> JSONObject {
        try Self.object(await ask(method, target, body).body)
    }

    static func object(_ body: [UInt8]) throws -> JSONObject {
        try JSON.parse(body, limits: JSONLimits(maximumDepth: 8, maximumBytes: 64 * 1024)).object ?? [:]
    }

    /// Requests a code; returns the whole response.
    func requestCode(_ app: Int, _ more: String = "") async throws -> JSONObject {
        let body = #"{"app_id": "wx000000000000000\#(app)"\#(more)}"#
        let response = await ask("POST", "/simulator/code", body)
        #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        return try Self.object(response.body)
    }

    func code(_ app: Int, _ more: String = "") async throws -> String {
        try #require(try await requestCode(app, more)["code"]?.string)
    }

    static func exchange(_ app: Int, _ code: String, secret: String? = nil) -> String {
        let path = app == 4 ? "/sns/jscode2session" : "/sns/oauth2/access_token"
        return """
            \(path)?appid=wx000000000000000\(app)&secret=\(secret ?? "s\(app)")&\(app == 4 ? "js_code" : "code")=\(code)\
            &grant_type=authorization_code
            """
    }

    // MARK: - Provider

    /// A provider that calls this WeChat.
    func provider(_ lines: String = "") throws -> @Sendable (String, [String: String]) async throws -> SignIn {
        let block = """
            apps:
              ios: { variant: mobile, app_id: wx0000000000000001, app_secret: s1 }
              web: { variant: website, app_id: wx0000000000000002, app_secret: s2 }
              page: { variant: official_account, app_id: wx0000000000000003, app_secret: s3 }
              mini: { variant: mini_program, app_id: wx0000000000000004, app_secret: s4, phone: true }
            base_url: http://127.0.0.1:1
            \(lines)
            """
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "config.yaml", environment: { _ in nil }, into: &diagnostics)
        let configuration = try #require(
            node?.decode(WeChatConfiguration.self, title: "provider 'wechat'", into: &diagnostics))
        let clock = Self.clock(seconds)
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: Caller(endpoints: endpoints), store: detached.store, hashing: detached.hashing,
            users: nil)
        let provider = try WeChatProvider(configuration, context: .detached("wechat", services: services))
        return { app, members in
            let texts = members.merging(["app": app]) { $1 }.mapValues { Secret($0) }
            let login = AuthenticationContext(
                now: clock.unixTime, deadline: clock.monotonicTime + .seconds(10),
                client: ClientNetwork(address: [UInt8](repeating: 1, count: 16)), purpose: .login)
            return try await provider.signIn(with: SignInForm(texts: texts, others: [:], isForm: true), in: login)
        }
    }

    /// Passes calls to the simulator without a network.
    private struct Caller: HTTPCalling {
        let endpoints: WeChatSimulatorEndpoints

        func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
            let target = call.url.dropFirst("http://127.0.0.1:1".count).split(separator: "?", maxSplits: 1)
            var sent: [UInt8]?
            if case .body(let bytes, _) = call.content { sent = bytes }
            let request = LocalRequest(
                method: sent == nil ? "GET" : "POST", path: String(target[0]),
                query: target.count > 1 ? String(target[1]) : "", fields: [], body: sent ?? [],
                bodyBytes: sent?.count ?? 0, client: "127.0.0.1", requestID: "r1")
            let response = await endpoints.handle(request)
            return HTTPCallResponse(status: response.status, body: response.body)
        }
    }
}
