import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

/// Which requests get the result of a code once more, and for which the code counts as used.
@Suite struct `Repeated WeChat codes` {
    private static func network(_ bytes: UInt8...) -> ClientNetwork? {
        ClientNetwork(address: bytes + [UInt8](repeating: 0, count: 16 - bytes.count))
    }

    private static let first = network(0x20, 1, 0xD, 0xB8, 0, 0, 0, 1)
    private static let second = network(0x20, 1, 0xD, 0xB8, 0, 0, 0, 2)

    private static func bench(
        _ time: Time = Time(), store: (any SharedStoring)? = nil, name: String = "wechat"
    ) throws
        -> Bench
    {
        let bench = try Bench("profile: false", time: time, store: store, name: name)
        bench.weChat.respond(`WeChat exchange`.token, .json(`WeChat exchange`.tokenResponse()))
        return bench
    }

    /// `ok` or the error code.
    private static func signIn(
        _ bench: Bench, _ purpose: AuthenticationContext.Purpose, from network: ClientNetwork?, code: String = "c1"
    ) async -> String {
        do {
            let form = Bench.form(["app": "ios", "code": code])
            let signIn = try await bench.provider.signIn(with: form, in: bench.context(purpose, from: network))
            #expect((signIn.repetition == nil) == (bench.context(purpose, from: network).repetitionScope == nil))
            return "ok"
        } catch {
            return error.code.rawValue
        }
    }

    @Test func `from another network are used codes, and that is in the log`() async throws {
        let bench = try Self.bench()
        #expect(await Self.signIn(bench, .login, from: Self.first) == "ok")
        #expect(await Self.signIn(bench, .login, from: Self.second) == "wechat.code_reused")
        #expect(bench.log.text.contains("code=wechat.code_reused"))
        #expect(await Self.signIn(bench, .login, from: nil) == "wechat.code_reused")
        #expect(await Self.signIn(bench, .login, from: Self.first) == "ok")
        #expect(bench.weChat.calls.count == 1)
    }

    @Test func `from another network are used codes also after an error`() async throws {
        let bench = try Self.bench()
        bench.weChat.respond(`WeChat exchange`.token, .json(#"{"errcode":40029}"#))
        #expect(await Self.signIn(bench, .login, from: Self.first) == "wechat.upstream_bad_code")
        #expect(await Self.signIn(bench, .login, from: Self.second) == "wechat.code_reused")
        #expect(await Self.signIn(bench, .login, from: Self.first) == "wechat.upstream_bad_code")
    }

    @Test func `from an unknown network are used codes`() async throws {
        let bench = try Self.bench()
        #expect(await Self.signIn(bench, .login, from: nil) == "ok")
        #expect(await Self.signIn(bench, .login, from: nil) == "wechat.code_reused")
        #expect(await Self.signIn(bench, .login, from: Self.first) == "wechat.code_reused")
    }

    @Test func `at another endpoint or in another session are used codes`() async throws {
        let bench = try Self.bench()
        let link = AuthenticationContext.Purpose.link(sessionID: "ses_1")
        #expect(await Self.signIn(bench, link, from: Self.first) == "ok")
        #expect(await Self.signIn(bench, .login, from: Self.first) == "wechat.code_reused")
        #expect(await Self.signIn(bench, .link(sessionID: "ses_2"), from: Self.first) == "wechat.code_reused")
        #expect(await Self.signIn(bench, link, from: Self.second) == "ok")
        #expect(await Self.signIn(bench, .login, from: Self.first, code: "c2") == "ok")
        #expect(await Self.signIn(bench, link, from: Self.first, code: "c2") == "wechat.code_reused")
        #expect(bench.weChat.calls.count == 2)
    }

    @Test func `at another provider with the same application are used codes`() async throws {
        let time = Time()
        let store = MemoryStore(clock: time.clock)
        let (one, other) = (try Self.bench(time, store: store), try Self.bench(time, store: store, name: "other"))
        #expect(await Self.signIn(one, .login, from: Self.first) == "ok")
        #expect(await Self.signIn(other, .login, from: Self.first) == "wechat.code_reused")
        #expect(other.weChat.calls.isEmpty)
    }

    @Test func `are rejected immediately while the first is in flight`() async throws {
        let bench = try Self.bench()
        let found = Box("")
        bench.weChat.hold {
            let result = await Self.signIn(bench, .login, from: Self.second)
            found.withLock { $0 = result }
        }
        #expect(await Self.signIn(bench, .login, from: Self.first) == "ok")
        #expect(found.value == "wechat.code_reused")
    }
}
