import MartletJSON
import Testing

@testable import MartletCommands

/// Collects printed lines.
private final class Lines {
    var all: [String] = []
}

@Suite struct `What commands show of a running gateway` {
    private static let plain = Terminal(isTerminal: true, environment: { $0 == "NO_COLOR" ? "1" : nil })
    private static let colored = Terminal(isTerminal: true, environment: { _ in nil })
    private static let pipe = Terminal(isTerminal: false, environment: { _ in nil })

    private func upstream(_ name: String, _ states: [String], isPanicking: Bool = false) -> JSONValue {
        .object([
            "name": .string(name), "panic": .bool(isPanicking),
            "endpoints": .array(states.map { .object(["state": .string($0)]) }),
        ])
    }

    @Test func `an upstream without a usable endpoint has a line`() {
        let upstreams = [
            upstream("good", ["healthy", "ejected"]), upstream("slow", ["slow_start"]), upstream("none", []),
            upstream("gone", ["draining", "ejected", "draining"]),
            upstream("panic", ["unhealthy"], isPanicking: true),
        ]
        #expect(
            StatusCommand.unusable(upstreams, Self.plain) == [
                "  upstream gone has no endpoint in use: 2 draining, 1 ejected",
                "  upstream panic has no healthy endpoint and uses all: 1 unhealthy",
            ])
        #expect(
            StatusCommand.unusable(upstreams, Self.colored).first
                == "  upstream gone \u{1B}[31mhas no endpoint in use\u{1B}[0m: 2 draining, 1 ejected")
    }

    private func shown(_ terminal: Terminal) -> [String] {
        let account: JSONObject = [
            "subject": "usr_1", "state": "disabled", "created_at": 0, "disabled": true, "disabled_at": 1, "sessions": 2,
            "identities": [
                [
                    "provider": "password", "subject": "ada", "linked_at": 0, "last_login_at": .null,
                    "credential_state": "unknown", "lock": ["seconds": 9],
                ]
            ],
        ]
        let lines = Lines()
        AccountPage(account).show(terminal) { lines.all.append($0) }
        return lines.all
    }

    @Test func `an account is a table on a terminal, and lines with tabs elsewhere`() {
        let lines = shown(Self.plain)
        #expect(lines.count == 5, "\(lines)")
        #expect(lines.first?.hasPrefix("SUBJECT  STATE     CREATED ") == true, "\(lines)")
        #expect(lines.dropFirst(3).first?.hasPrefix("PROVIDER  LINKED ") == true, "\(lines)")
        #expect(shown(Self.colored)[1].contains("\u{1B}[31mdisabled\u{1B}[0m"))
        let piped = shown(Self.pipe)
        #expect(piped.count == 2 && piped[0].hasPrefix("usr_1\tdisabled\t1970-01-01T00:00:00"), "\(piped)")
        #expect(piped.last?.hasSuffix("\tada\tcredential unknown\tthrottled 9 s") == true, "\(piped)")
    }

    @Test func `an account of the store has what the store knows`() {
        let account: JSONObject = [
            "subject": "usr_1", "state": "active", "created_at": 0, "claims": ["role": "staff"], "profile": [:],
            "identities": [
                ["provider": "apple", "subject": "001", "linked_at": 0, "claims": ["email": "a@example.com"]]
            ],
        ]
        let lines = Lines()
        AccountPage(account).show(Self.pipe) { lines.all.append($0) }
        #expect(lines.all.count == 3 && lines.all[0].hasSuffix("\tsessions unknown"), "\(lines.all)")
        #expect(lines.all[1] == "claims\t" + #"{"role":"staff"}"#)
        #expect(
            lines.all[2].hasSuffix(
                "\tlast login none\t001\tcredential unknown\tclaims " + #"{"email":"a@example.com"}"#))
    }

    @Test(arguments: [
        ("0.0.0.0:17143", false, "http://127.0.0.1:17143/"), ("[::]:9901", true, "https://[::1]:9901/"),
        ("10.0.0.7:9901", false, "http://10.0.0.7:9901/"), ("unix:/run/a.sock", true, "unix:/run/a.sock"),
    ])
    func `the dashboard's URL is one that the listener accepts`(address: String, isSecure: Bool, url: String) {
        #expect(StartBanner.dashboard(address, isSecure: isSecure) == url)
    }
}
