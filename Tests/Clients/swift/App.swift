import AuthenticationServices
import Security

/// The app of the test: signs in with the guides' code, and prints what the API gets.
@main struct App {
    @MainActor static func main() async throws {
        let login = AppleLogin()
        let tokens: Tokens = try await withCheckedThrowingContinuation { waiting in
            login.completed = { waiting.resume(with: $0) }
            Task { try await login.start() }
        }
        show("signed in", Data(tokens.subject.utf8))
        let session = Session(login)
        try Keychain.keep(tokens)
        show("api", try await session.get("orders"))

        // Two requests with a token that is over, and one refresh.
        var old = tokens
        old.access_token = "mat_" + String(repeating: "A", count: 43)
        try Keychain.keep(old)
        async let first = session.get("orders")
        async let second = session.get("orders")
        show("refreshed", try await first + second)
        show("updates", Data("\(updates)".utf8))

        try await showRejections(session, old)
        let web = WebLogin()
        let exchanged = try JSONDecoder().decode(Tokens.self, from: try await web.tokens(provider: "apple"))
        try Keychain.keep(exchanged)
        show("web", try await session.get("orders"))
    }

    /// What an outage is, and what the end of a session.
    @MainActor private static func showRejections(_ session: Session, _ old: Tokens) async throws {
        let fields = ["Retry-After": "7"]
        let response = HTTPURLResponse(
            url: URL(fileURLWithPath: "/"), statusCode: 503, httpVersion: nil, headerFields: fields)
        do {
            if let response { try Rejected.check(Data(#"{"code":"overloaded"}"#.utf8), response) }
        } catch let rejected as Rejected {
            show("outage", Data("\(rejected.status) \(rejected.code) \(rejected.retryAfter ?? 0)".utf8))
        }
        var ended = old
        ended.refresh_token = "mrt_" + String(repeating: "A", count: 43)
        try Keychain.keep(ended)
        do {
            _ = try await session.get("orders")
        } catch let rejected as Rejected {
            show("ended", Data("\(rejected.status) \(rejected.code) \(Keychain.tokens == nil)".utf8))
        }
    }

    static func show(_ what: String, _ data: Data) {
        print("\(what): \(String(decoding: data, as: UTF8.self).replacing("\n", with: " "))")
    }
}
