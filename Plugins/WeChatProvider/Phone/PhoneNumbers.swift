internal import MartletCore
private import MartletJSON
internal import MartletProvider

/// Exchanges the code of a mini-program's button for the phone number that its user has agreed to share.
struct PhoneNumbers: Sendable {
    let tokens: AccountTokens
    let client: WeChatClient
    let endpoints: WeChatEndpoints
    let deadline: MonotonicTime

    /// The phone number in international form, such as `+8613800000000`.
    ///
    /// The code can be used once, but a call with a token that is not valid does not use it.
    /// - Throws: `rejected` for a code that WeChat does not know, `unavailable` without a valid response.
    func number(for code: Secret, of app: WeChatConfiguration.NamedApp) async throws(AuthenticationError) -> String {
        let token = try await tokens.token(of: app, client, endpoints, until: deadline)
        do throws(AuthenticationError) { return try await ask(code, app, token) } catch {
            guard error.code == WeChatError.badTokenReason else { throw error }
        }
        // It was revoked, or another program has fetched one.
        return try await ask(
            code, app, try await tokens.token(of: app, insteadOf: token, client, endpoints, until: deadline))
    }

    private func ask(
        _ code: Secret, _ app: WeChatConfiguration.NamedApp, _ token: Secret
    ) async throws(AuthenticationError) -> String {
        let body: JSONObject = ["code": .string(code.text)]
        return try await client.send(
            .phoneNumber, endpoints.phoneNumber(token: token),
            content: .body(JSON.write(body), type: "application/json"), for: app.clientName,
            until: deadline
        ) { (response) throws(WeChatResponse.ParseError) in
            let info = try response.object("phone_info")
            guard info["watermark"]?.object?["appid"]?.string?.hasSameBytes(as: app.id) == true,
                let number = DataCheck.phone(in: info)
            else { throw WeChatResponse.ParseError() }
            return number
        }
    }
}
