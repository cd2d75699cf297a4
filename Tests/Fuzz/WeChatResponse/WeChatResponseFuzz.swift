import Dispatch
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import Synchronization
import WeChatProvider

private let block = """
    apps:
      app: { variant: mobile, app_id: wx0000000000000001, app_secret: s }
      page: { variant: official_account, app_id: wx0000000000000002, app_secret: s }
      mini: { variant: mini_program, app_id: wx0000000000000003, app_secret: s }
    base_url: http://127.0.0.1:1
    allow_base_scope: true
    decrypt: true
    """

/// Responds with the fuzzer's input: to the exchange with the first part, to everything after it with the second.
private final class Script: HTTPCalling {
    private let parts = Mutex<[[UInt8]]>([])

    func load(_ next: [[UInt8]]) { parts.withLock { $0 = next } }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        let isProfile = call.url.hasPrefix("http://127.0.0.1:1/sns/userinfo?")
        return HTTPCallResponse(status: 200, body: parts.withLock { isProfile ? $0[1] : $0[0] })
    }
}

/// A provider in front of the script; every login happens long after the one before.
private struct Bench {
    static let shared = Bench()
    static let runs = Atomic<Int>(0)

    let script = Script()
    let provider: WeChatProvider
    let clock = Clock(
        unixTime: { UnixTime(seconds: 1_700_000_000) },
        monotonicTime: { MonotonicTime(nanoseconds: Int64(Bench.runs.load(ordering: .relaxed)) * 1_000_000_000_000) })

    init() {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "fuzz", environment: { _ in nil }, into: &diagnostics)
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: script, store: detached.store, hashing: detached.hashing, users: nil)
        guard let configuration = node?.decode(WeChatConfiguration.self, title: "fuzz", into: &diagnostics),
            let provider = try? WeChatProvider(configuration, context: .detached("wechat", services: services))
        else { preconditionFailure("\(diagnostics)") }
        self.provider = provider
    }

    func login(_ app: String, _ parts: [[UInt8]]) async -> Result<SignIn, AuthenticationError> {
        let run = Bench.runs.add(1, ordering: .relaxed).newValue
        script.load(parts)
        var texts = ["app": Secret(app), "code": Secret("c\(run)")]
        if app == "mini", !parts[1].isEmpty {
            texts["raw_data"] = Secret(parts[1])
            texts["signature"] = Secret(parts[2])
            texts["encrypted_data"] = Secret(parts[2])
            texts["iv"] = Secret("EBESExQVFhcYGRobHB0eHw==")
        }
        let form = SignInForm(texts: texts, others: [:], isForm: true)
        let context = AuthenticationContext(now: clock.unixTime, deadline: clock.monotonicTime + .seconds(10))
        do { return .success(try await provider.signIn(with: form, in: context)) } catch { return .failure(error) }
    }
}

/// Whatever WeChat responds, a login ends with an identity with clean names, or with one of the provider's own reasons.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let first = bytes.first else { return 0 }
    // Zero bytes separate the responses: they have no meaning in any of them.
    let parts = bytes.dropFirst().split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
    let app = ["app", "page", "mini"][Int(first) % 3]
    let run = Run(app: app, parts: parts + [[], []])
    Task {
        let found = await Bench.shared.login(run.app, run.parts)
        run.outcome.withLock { $0 = found }
        run.done.signal()
    }
    run.done.wait()
    run.outcome.withLock { check($0) }
    return 0
}

/// One login and what came of it.
private final class Run: Sendable {
    let app: String
    let parts: [[UInt8]]
    let outcome = Mutex<Result<SignIn, AuthenticationError>?>(nil)
    let done = DispatchSemaphore(value: 0)

    init(app: String, parts: [[UInt8]]) {
        self.app = app
        self.parts = parts
    }
}

private func check(_ outcome: Result<SignIn, AuthenticationError>?) {
    switch outcome {
    case nil: preconditionFailure("no outcome")
    case .failure(let error):
        // What is not base64 is the client's, and has sent nothing.
        let isClients = error.bodyErrors.first.map { ["/encrypted_data", "/iv"].contains($0.pointer) } ?? false
        precondition(isClients == (error.disposition == .malformed), "\(error.code)")
        precondition(isClients || error.code.rawValue.hasPrefix("wechat."), "\(error.code)")
    case .success(let signIn):
        let claims = signIn.identity.claims
        let subject = signIn.identity.providerSubject
        precondition(subject.hasPrefix("u:") || subject.hasPrefix("o:wx"), subject)
        let plain = subject.utf8.dropFirst(2)
        precondition(plain.allSatisfy { (0x2D...0x7A).contains($0) }, subject)
        precondition(claims["session_key"] == nil && claims["access_token"] == nil)
        let nickname = claims["nickname"]?.string ?? "-"
        precondition(
            !nickname.isEmpty && nickname.utf8.count <= 256 && nickname.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        precondition((claims["picture"]?.string ?? "https://").hasPrefix("https://"))
    }
}
