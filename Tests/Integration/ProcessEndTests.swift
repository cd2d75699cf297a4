import Foundation
import Glibc
import MartletTesting
import Testing

/// However a start fails and whenever the process is asked to leave, it ends by itself, with its code and soon.
///
/// `MARTLET_END_ROUNDS` says how often each is tried.
@Suite(.serialized) struct `Process end` {
    private static let rounds = Int(ProcessInfo.processInfo.environment["MARTLET_END_ROUNDS"] ?? "") ?? 4
    /// What an end may take, on a busy machine.
    private static let limit = Duration.seconds(10)

    /// How processes ended, and the longest time that it took.
    private struct Tally {
        private(set) var endings: [String: Int] = [:]
        private(set) var longest = Duration.zero

        mutating func note(_ ending: ChildProcess.Ending?, after time: Duration) {
            endings[ending.map { "\($0)" } ?? "hangs", default: 0] += 1
            longest = max(longest, time)
        }

        func tell(_ what: String) { print("\(what): \(endings), longest \(longest)") }
    }

    private static func start(_ config: String, in folder: TemporaryFolder) throws -> ChildProcess {
        let path = try folder.write(config, to: "config.yaml")
        return try ChildProcess(Executable.martlet(), ["run", "--config", path], output: folder)
    }

    private static func end(_ process: ChildProcess) -> ChildProcess.Ending? {
        if let ending = try? process.wait(within: limit) { return ending }
        process.kill(SIGKILL)
        return nil
    }

    /// Everything that has threads at work while a start fails: an issuer's keys by https, accounts, password hashes.
    private static func busyConfig(listen: String, in folder: TemporaryFolder) throws -> GatewayConfig {
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.listen = "- address: \(listen)"
        config.providers = """
            apple: { kind: apple, audiences: [com.example.app], base_url: "https://127.0.0.1:\(try refusedPort())" }
            password: { kind: password, users: accounts }
            """
        config.more = "accounts: { url: \"sqlite:\(folder.file("accounts.db"))\" }\n"
        return config
    }

    private static func expectFailure(
        _ what: String, _ code: Int32, saying text: String, _ config: (TemporaryFolder) throws -> String,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        var tally = Tally()
        for _ in 0..<rounds {
            let folder = try TemporaryFolder()
            let started = ContinuousClock.now
            let process = try start(try config(folder), in: folder)
            tally.note(end(process), after: ContinuousClock.now - started)
            #expect(process.errorOutput.contains(text), "\(process.errorOutput)", sourceLocation: location)
        }
        tally.tell(what)
        #expect(tally.endings == ["\(ChildProcess.Ending.exited(code))": rounds], sourceLocation: location)
    }

    @Test func `an address that is not ours is 69`() throws {
        try Self.expectFailure("no such address", 69, saying: "server.cannot_listen") {
            try Self.busyConfig(listen: "192.0.2.1:22101", in: $0).text
        }
    }

    @Test func `an address that is taken is 69`() throws {
        let taken = try Listener(on: .loopback(0))
        try Self.expectFailure("taken address", 69, saying: "server.address_in_use") {
            try Self.busyConfig(listen: "\(taken.endpoint)", in: $0).text
        }
    }

    @Test func `a certificate that cannot be read is 78`() throws {
        try Self.expectFailure("bad certificate", 78, saying: "tls.") { folder throws in
            let certificate = try folder.write("no certificate", to: "c.pem")
            var config = try Self.busyConfig(listen: "127.0.0.1:0", in: folder)
            config.listen += "\n  tls: { certificate_file: \(certificate), key_file: \(certificate) }"
            return config.text
        }
    }

    @Test func `a store that refuses the password is 69 under deny, and no end under cached`() throws {
        let redis = try RedisServer(password: "right")
        func config(_ onError: String, _ folder: TemporaryFolder) throws -> String {
            var config = try Self.busyConfig(listen: "127.0.0.1:0", in: folder)
            config.more += "store: { url: \"redis://:wrong@127.0.0.1:\(redis.port)\", on_error: \(onError) }\n"
            return config.text
        }
        try Self.expectFailure("wrong password", 69, saying: "redis.wrong_password") { try config("deny", $0) }
        let folder = try TemporaryFolder()
        try withMartlet(try config("cached", folder)) { gateway throws in
            try waitUntil("it is degraded") { try gateway.askAdmin("/readyz").member("status") == "degraded" }
        }
    }

    @Test func `whenever SIGTERM comes, the end is a good one`() throws {
        var tally = Tally()
        var early = 0
        for round in 0..<(3 * Self.rounds) {
            let folder = try TemporaryFolder()
            let process = try Self.start(try Self.busyConfig(listen: "127.0.0.1:0", in: folder).text, in: folder)
            usleep(UInt32.random(in: 0..<(round % 2 == 0 ? 60_000 : 500_000)))
            // Until the first instruction of ours, while the system still maps the program, the signal is the system's.
            let isOurs = try Self.blocksSignals(process.identifier)
            let asked = ContinuousClock.now
            process.kill(SIGTERM)
            let ending = Self.end(process)
            if !isOurs, ending == .signalled(SIGTERM) {
                early += 1
                continue
            }
            tally.note(ending, after: ContinuousClock.now - asked)
        }
        tally.tell("SIGTERM (\(early) before the program began)")
        #expect(tally.endings == ["\(ChildProcess.Ending.exited(0))": 3 * Self.rounds - early])
    }

    /// Whether a process keeps SIGTERM for the thread that waits for it.
    private static func blocksSignals(_ process: Int32) throws -> Bool {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") } ?? ""
        let mask = UInt64(line.split(separator: "\t").last ?? "", radix: 16) ?? 0
        return mask >> UInt64(SIGTERM - 1) & 1 == 1
    }

    @Test func `a start that waits for another process ends at SIGTERM all the same`() throws {
        let mute = try Listener(on: .loopback(0))
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.more = "accounts: { url: \"postgresql://u@\(mute.endpoint)/d?sslmode=disable\" }\n"
        let folder = try TemporaryFolder()
        let process = try Self.start(config.text, in: folder)
        let waiting = try #require(mute.accept(within: .seconds(10)))
        defer { waiting.close() }
        let asked = Stopwatch()
        process.kill(SIGTERM)
        #expect(Self.end(process) == .exited(0))
        #expect(asked.undisturbed < .seconds(8))
        #expect(process.output.contains("shutting down before startup completed"))
    }
}
