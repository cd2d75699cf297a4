import Testing

@testable import MartletRedis

@Suite struct RedisRedirectTests {
    private let asked = RedisURL.Address.tcp(host: "10.0.0.1", port: 7000)

    private func redirect(_ text: String) -> RedisRedirect? { RedisRedirect(Array(text.utf8)) }

    @Test func `reads who has a slot`() throws {
        let moved = try #require(redirect("MOVED 3999 127.0.0.1:6381"))
        #expect(!moved.isTemporary && moved.slot == 3999)
        #expect(moved.address(from: asked) == .tcp(host: "127.0.0.1", port: 6381))
        let ask = try #require(redirect("ASK 16383 redis-1.internal:1"))
        #expect(ask.isTemporary && ask.address(from: asked) == .tcp(host: "redis-1.internal", port: 1))
        #expect(redirect("MOVED 0 ::1:7000")?.address(from: asked) == .tcp(host: "::1", port: 7000))
    }

    @Test(arguments: ["MOVED 1 :7001", "MOVED 1 ?:7001"])
    func `stands for the host that was asked`(text: String) {
        #expect(redirect(text)?.address(from: asked) == .tcp(host: "10.0.0.1", port: 7001))
    }

    @Test(
        arguments: [
            "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1", "MOVED 1 a", "MOVED 1 a:0",
            "MOVED 1 a:65536", "MOVED 1 a:1 b", "MOVED 1 a b:1", "MOVED 1 a\r\nb:1", "MOVED 1 a/b:1", "moved 1 a:1",
            "ASKING 1 a:1", "MOVED  1 a:1", "MOVED 1 \u{e9}:1", "MOVED 1 a:+1",
        ])
    func `rejects anything else`(text: String) { #expect(redirect(text) == nil) }

    @Test func `reads an error of a key that is being moved as one to repeat`() {
        let texts = [
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "ERR Script attempted to access a non local key in a cluster node script: f_1, on @user_script:1.",
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: "
                + "Lua script attempted to access a non local key in a cluster node",
        ]
        for text in texts { #expect(RedisErrorReply.kind(of: Array(text.utf8)) == "TRYAGAIN") }
    }
}
