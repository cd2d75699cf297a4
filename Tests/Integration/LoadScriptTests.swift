import Foundation
import MartletTesting
import Synchronization
import Testing

/// The load test that users aim at their own gateways, against one that is right and against servers that are not.
@Suite(.timeLimit(.minutes(3))) struct LoadScriptTests {
    private static let token = "a-token.that-is-planted.for-the-load-test"
    private let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Bench/load")

    private func load(_ arguments: String...) throws -> CommandResult {
        try run(
            script.standardizedFileURL.path, arguments,
            environment: ["MARTLET_EXECUTABLE": try Executable.martlet()], within: .seconds(90))
    }

    /// The numbers of the last line that begins with a word.
    private func numbers(_ line: String, in result: CommandResult) -> [Double]? {
        result.output.split(separator: "\n").last { $0.hasPrefix("\(line) ") }?.split(separator: " ").dropFirst()
            .compactMap { Double($0) }
    }

    @Test func `counts every request against a demo of its own, each kind as its share says`() throws {
        let result = try load("--requests", "200", "--parallel", "8", "--bad", "20", "--missing", "5%")
        #expect(result.ending == .exited(0), "\(result)")
        #expect(result.output.hasPrefix("200 requests in "), "\(result)")
        #expect(numbers("200", in: result) == [150, 0, 0], "\(result)")
        #expect(numbers("401", in: result) == [0, 40, 10], "\(result)")
        for (kind, count) in [("all", 200.0), ("good", 150), ("bad", 40), ("missing", 10)] {
            let line = try #require(numbers(kind, in: result), "\(result)")
            let times = Array(line.dropFirst())
            #expect(line[0] == count && times.count == 5 && times == times.sorted(), "\(result)")
        }
    }

    @Test func `holds a rate, and sends bodies`() throws {
        let began = ContinuousClock.now
        let result = try load("--requests", "40", "--parallel", "4", "--rate", "20/s", "--upload", "64KiB")
        #expect(result.ending == .exited(0), "\(result)")
        #expect(ContinuousClock.now - began > .seconds(1.5))
        #expect(numbers("200", in: result) == [32, 0, 0] && numbers("401", in: result) == [0, 4, 4], "\(result)")
    }

    @Test func `says so when a changed token is accepted, or none`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Self.token + "\n", to: "token")
        let careless = try ScriptedUpstream()
        let result = try load("--url", "\(careless.url)/a?b=c", "--token", file, "--requests", "50", "--parallel", "2")
        #expect(result.ending == .exited(1), "\(result)")
        #expect(numbers("200", in: result) == [40, 5, 5], "\(result)")
        #expect(result.errorOutput.contains("5 bad requests did not get 401"), "\(result)")
        #expect(result.errorOutput.contains("5 missing requests did not get 401"), "\(result)")
        let sent = careless.requests.map { $0["Authorization"] }
        #expect(sent.count { $0 == "Bearer \(Self.token)" } == 40 && sent.count { $0 == nil } == 5)
        let spoiled = Set(sent.compactMap { $0 }).subtracting(["Bearer \(Self.token)"])
        #expect(spoiled.count == 1 && spoiled.first?.count == Self.token.count + 7)
        #expect(careless.requests.allSatisfy { $0.target == "/a?b=c" })
    }

    @Test func `says so when a valid token is rejected, or no server responds`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Self.token + "\n", to: "token")
        let strict = try ScriptedUpstream { try $0.respond(401) }
        let refused = try load("--url", strict.url, "--token", file, "--requests", "20", "--parallel", "2")
        #expect(refused.ending == .exited(1), "\(refused)")
        #expect(refused.errorOutput == "load: 16 good requests did not get 2xx\n", "\(refused)")
        strict.stop()
        let silent = try load("--url", strict.url, "--token", file, "--requests", "20", "--parallel", "2")
        #expect(silent.ending == .exited(1) && numbers("none", in: silent) == [16, 2, 2], "\(silent)")
    }

    @Test func `shows the token in no list of processes`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Self.token + "\n", to: "token")
        let seen = Mutex<[String]>([])
        // Looked for while a request is under way, so that everything that takes part is there.
        let upstream = try ScriptedUpstream { exchange in
            let found = Self.processes { $0.contains("planted.for") }
            seen.withLock { $0 += found }
            try exchange.respond(exchange.request["Authorization"]?.hasSuffix(Self.token) == true ? 200 : 401)
        }
        let result = try load("--url", upstream.url, "--token", file, "--requests", "20", "--parallel", "2")
        #expect(result.ending == .exited(0), "\(result)")
        #expect(seen.withLock { $0 } == [])
        #expect(Self.processes { $0.contains(file) } == [])
    }

    /// Command lines of processes that match.
    private static func processes(_ matches: (String) -> Bool) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.filter { Int($0) != nil }.compactMap { name in
            FileManager.default.contents(atPath: "/proc/\(name)/cmdline")
                .map { String(decoding: $0, as: UTF8.self) }
        }.filter(matches)
    }

    @Test(arguments: [
        ["--requests", "0"], ["--rate"], ["--upload", "1GB"], ["more"], ["--url", "ftp://x"],
        ["--url", "http://x/{a}"], ["--bad", "10", "--url", "http://x"], ["--token", "no token", "--url", "http://x"],
        ["--bad", "60", "--missing", "50"], ["--token", "a-token-for-the-demo"],
    ])
    func `what makes no sense is exit 64`(arguments: [String]) throws {
        let result = try run(script.standardizedFileURL.path, arguments)
        #expect(result.ending == .exited(64) && result.errorOutput.contains("--requests N"), "\(result)")
    }
}
