import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

/// The client data of a login, and its form in the list of sessions.
@Suite struct `A session's client` {
    private func login(
        _ stand: Stand, _ name: JSONValue?, agent: String? = nil
    ) async -> Stand.Reply {
        var body: JSONObject = ["proof": "anna"]
        if let name { body["device_name"] = name }
        return await stand.send(
            "POST", "/auth/login/apple", type: Stand.json, JSON.write(body),
            fields: agent.map { [("User-Agent", $0)] } ?? [])
    }

    private func entry(_ stand: Stand, _ login: Stand.Reply) async -> JSONObject? {
        let reply = await stand.send("GET", "/auth/sessions", bearer: login["access_token"])
        return reply.object["sessions"]?.array?.first?.object
    }

    @Test(arguments: ["Anna\u{2019}s iPhone", "\u{1F469}\u{200D}\u{1F4BB}", String(repeating: "\u{1F600}", count: 64)])
    func `is listed by its name`(name: String) async {
        let stand = Stand()
        let entry = await entry(stand, await login(stand, .string(name), agent: "App/1.0 (iOS)"))
        #expect(entry?["device_name"]?.string == name && entry?["user_agent"]?.string == "App/1.0 (iOS)")
    }

    @Test(arguments: [nil, .null, .string("")] as [JSONValue?])
    func `need not have one`(name: JSONValue?) async {
        let stand = Stand()
        let entry = await entry(stand, await login(stand, name))
        #expect(entry != nil && entry?["device_name"] == nil && entry?["user_agent"] == nil)
        #expect(entry?["address"] == nil && entry?["last_address"] == nil)
    }

    @Test(
        arguments: [
            (.string(String(repeating: "a", count: 65)), .tooLong), (.string("a\nb"), .invalid),
            (.string("\u{0}"), .invalid),
            (.string("a\u{202E}b"), .invalid), (.string("\u{85}"), .invalid), (.integer(7), .unknownType),
        ] as [(JSONValue, BodyError.Code)])
    func `is rejected with a name that is not displayable`(name: JSONValue, code: BodyError.Code) async {
        let stand = Stand()
        let reply = await login(stand, name)
        #expect(reply.status == 400 && reply.code == "request_invalid")
        #expect(reply.response.failure?.bodyErrors.map(\.pointer) == ["/device_name"])
        #expect(reply.response.failure?.bodyErrors.map(\.code) == [code])
        let reason: ErrorCode = code == .unknownType ? "signin.bad_member" : "signin.bad_device_name"
        #expect(reply.response.failure?.reason == reason)
        // Before a single-use credential is consumed.
        #expect(stand.apple.script.value.logins == 0)
    }

    @Test func `has a truncated ASCII agent`() async {
        let stand = Stand()
        let entry = await entry(
            stand, await login(stand, nil, agent: "\u{E9}\u{7F}" + String(repeating: "x", count: 400)))
        #expect(entry?["user_agent"]?.string == "???" + String(repeating: "x", count: 253))
    }
}
