import MartletProvider
import Testing

@testable import MartletCommands

@Suite struct `Demonstrations as commands` {
    private static let url = "http://127.0.0.1:1234"

    private static func command(_ demonstration: Demonstration) -> DemonstrationCommand? {
        DemonstrationCommand(demonstration, of: url)
    }

    @Test func `go to the gateway or to the simulator`() throws {
        let path = "/plugin/key/hello?a=1&b=2"
        let gateway = try #require(
            Self.command(
                Demonstration(
                    401, "another key", target: .gateway(path: path), method: "POST",
                    headers: [.init("X-Api-Key", "k1")], body: "{}")))
        #expect(gateway.expectation == "401: another key" && gateway.path == path && gateway.address == nil)
        #expect(gateway.options == ["-X 'POST'", "-H 'X-Api-Key: k1'", "--data-raw '{}'"])
        let simulator = try #require(Self.command(Demonstration(200, "keys", target: .simulator(path: "/keys"))))
        #expect(simulator.path == nil && simulator.address == "'\(Self.url)/keys'" && simulator.options.isEmpty)
    }

    @Test func `fetch what is good for a moment`() throws {
        let header = Demonstration.Header("Authorization", "Bearer ", followedBy: "/token?of=ada")
        let command = try #require(
            Self.command(Demonstration(200, "a token", target: .gateway(path: "/"), headers: [header])))
        #expect(command.options == [#"-H 'Authorization: Bearer '"$(curl -s '\#(Self.url)/token?of=ada')""#])
    }

    @Test func `are one command, whatever their parts are`() throws {
        let text = #"a'; rm -rf "$HOME" `id` $(id) \"#
        let demonstration = Demonstration(
            200, "x", target: .gateway(path: "/"), method: text, headers: [.init("X", text)], body: text)
        let quoted = #"a'\''; rm -rf "$HOME" `id` $(id) \"#
        let options = try #require(Self.command(demonstration)).options
        #expect(options == ["-X '\(quoted)'", "-H 'X: \(quoted)'", "--data-raw '\(quoted)'"])
    }

    static let unprintable: [Demonstration] = [
        Demonstration(200, "two\nlines", target: .gateway(path: "/")),
        Demonstration(200, "turned \u{202E}", target: .gateway(path: "/")),
        Demonstration(99, "status", target: .gateway(path: "/")),
        Demonstration(200, "method", target: .gateway(path: "/"), method: "A\u{1B}[0m"),
        Demonstration(200, "body", target: .gateway(path: "/"), body: "a\u{0}b"),
        Demonstration(200, "name", target: .gateway(path: "/"), headers: [.init("@/etc/passwd", "a")]),
        Demonstration(200, "no name", target: .gateway(path: "/"), headers: [.init("", "a")]),
        Demonstration(200, "value", target: .gateway(path: "/"), headers: [.init("X", "a\r\nB: c")]),
        Demonstration(200, "source", target: .gateway(path: "/"), headers: [.init("X", followedBy: "/a'b")]),
        Demonstration(200, "source", target: .gateway(path: "/"), headers: [.init("X", followedBy: "b")]),
        Demonstration(200, "path", target: .gateway(path: "")), Demonstration(200, "path", target: .gateway(path: "a")),
        Demonstration(200, "path", target: .gateway(path: "/a b")),
        Demonstration(200, "path", target: .simulator(path: "/[1-9]")),
        Demonstration(200, "path", target: .simulator(path: "/'; id; '")),
    ]

    @Test(arguments: unprintable)
    func `are rejected where they could not be printed`(demonstration: Demonstration) {
        #expect(Self.command(demonstration) == nil)
    }
}
