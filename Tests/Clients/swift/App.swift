import AuthenticationServices

/// The app of the test: signs in with the guides' code, and prints what the API gets.
@main struct App {
    @MainActor static func main() async throws {
        let login = AppleLogin()
        let tokens: Tokens = try await withCheckedThrowingContinuation { waiting in
            login.completed = { waiting.resume(with: $0) }
            Task { try await login.start() }
        }
        show("signed in", Data(tokens.subject.utf8))
        show("api", try await login.orders(tokens))
        show("refreshed", try await login.orders(try await login.refreshed(tokens)))

        let web = WebLogin()
        let exchanged = try JSONDecoder().decode(Tokens.self, from: try await web.tokens(provider: "apple"))
        show("web", try await login.orders(exchanged))
    }

    static func show(_ what: String, _ data: Data) {
        print("\(what): \(String(decoding: data, as: UTF8.self).replacing("\n", with: " "))")
    }
}
