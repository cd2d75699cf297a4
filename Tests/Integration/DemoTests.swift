import Foundation
import MartletTesting
import Testing

/// `martlet demo`: what it prints can be pasted, and does what is said beside it.
@Suite struct `Demo` {
    /// A demo on a free port, and what it printed.
    private final class Running: Sendable {
        let folder: TemporaryFolder
        let process: ChildProcess

        init(_ arguments: [String] = ["--listen", "127.0.0.1:0"]) throws {
            let folder = try TemporaryFolder()
            let process = try ChildProcess(
                try Executable.martlet(), ["demo"] + arguments, output: folder, name: "demo")
            try waitUntil("the demo has printed its last line", within: .seconds(20)) {
                guard process.poll() == nil else { throw TestFailure("\(process.output)\(process.errorOutput)") }
                return process.output.contains("/simulator/token\n")
            }
            self.folder = folder
            self.process = process
        }

        /// The commands, each with the line above it.
        var steps: [(expectation: String, command: String)] {
            let lines = process.output.split(separator: "\n").map(String.init)
            return zip(lines, lines.dropFirst()).filter { $1.hasPrefix("curl ") }.map { ($0, $1) }
        }

        /// An address that the page names, such as that behind `operator`.
        func url(_ name: String) throws -> String {
            let line = process.output.split(separator: "\n").first { $0.contains("  \(name) ") }
            guard let word = line?.split(separator: " ").first(where: { $0.hasPrefix("http://") }) else {
                throw TestFailure("no \(name) in \(process.output)")
            }
            return String(word)
        }
    }

    /// Runs a line as a shell would, with curl's progress left out.
    private static func shell(_ command: String) throws -> String {
        let result = try run("/bin/sh", ["-c", command.replacing("curl -i", with: "curl -sS -i --max-time 20")])
        guard result.ending == .exited(0) else { throw TestFailure("\(command): \(result)") }
        return result.output
    }

    @Test func `every line that it prints does what is said above it`() throws {
        let demo = try Running()
        let steps = demo.steps
        #expect(steps.count >= 8)
        for (expectation, command) in steps {
            let answer = try Self.shell(command)
            let status = expectation.dropFirst(2).prefix(3)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(expectation)\n\(answer)")
            if let code = expectation.split(separator: ":").first?.split(separator: " ").dropFirst(2).first {
                #expect(answer.contains("\"code\":\"\(code)\""), "\(expectation)\n\(answer)")
            }
        }
        for word in ["expired", "forged", "credential_missing", "not_allowed"] {
            #expect(steps.contains { $0.expectation.contains(word) }, "\(word)")
        }
    }

    @Test func `the upstream gets the identity and never the token`() throws {
        let demo = try Running()
        let good = try #require(demo.steps.first { $0.expectation.contains("Apple vouches") }).command
        let answer = try Self.shell(good)
        #expect(answer.contains("\"x-user-id\":\"apple:001234."), "\(answer)")
        #expect(
            answer.contains("\"x-user-provider\":\"apple\"") && answer.contains("\"path\":\"/orders\""), "\(answer)")
        #expect(!answer.contains("authorization") && !answer.contains("eyJ"), "\(answer)")
        let open = try #require(demo.steps.first { $0.command.contains("somebody-else") }).command
        #expect(try !Self.shell(open).contains("somebody-else"))
    }

    @Test func `a token that was asked for is good`() throws {
        let demo = try Running()
        let mint = try #require(demo.steps.last).command.replacing("curl -i", with: "curl -sS")
        let made = Data(try run("/bin/sh", ["-c", mint]).output.utf8)
        let token = try #require(
            (try JSONSerialization.jsonObject(with: made) as? [String: Any])?["identity_token"] as? String)
        let base = try demo.url("gateway")
        let answer = try Self.shell("curl -i -H 'Authorization: Bearer \(token)' \(base)/v1/a")
        #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("\"x-user-id\":\"apple:me\""), "\(answer)")
        #expect(try Self.shell("curl -i \(demo.url("operator"))").hasPrefix("HTTP/1.1 200 "))
    }

    @Test(arguments: [SIGINT, SIGTERM]) func `a signal ends it, and nothing is left`(_ signal: Int32) throws {
        let demo = try Running()
        let base = try demo.url("gateway")
        let before = try FileManager.default.contentsOfDirectory(atPath: demo.folder.path)
        #expect(try Self.children(of: demo.process.identifier).isEmpty)
        demo.process.kill(signal)
        #expect(try demo.process.wait() == .exited(0), "\(demo.process.errorOutput)")
        let gone = try run("/bin/sh", ["-c", "curl -sS --max-time 5 \(base)/public/a"])
        #expect(gone.ending == .exited(7), "\(gone)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: demo.folder.path) == before)
    }

    @Test func `a socket goes with it`() throws {
        let folder = try TemporaryFolder()
        let demo = try Running(["--listen", "unix:\(folder.file("s"))"])
        #expect(try Self.shell(try #require(demo.steps.first).command).hasPrefix("HTTP/1.1 200 "))
        demo.process.kill(SIGINT)
        #expect(try demo.process.wait() == .exited(0))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `an unsuitable address is told`() throws {
        #expect(try run(try Executable.martlet(), ["demo", "--listen", "nowhere"]).ending == .exited(64))
        let demo = try Running()
        let taken = try demo.url("gateway").replacing("http://", with: "")
        let second = try run(try Executable.martlet(), ["demo", "--listen", taken])
        #expect(second.ending == .exited(69) && second.errorOutput.contains("address_in_use"), "\(second)")
    }

    /// The processes that a process has started and that are still there.
    private static func children(of identifier: Int32) throws -> String {
        try String(contentsOfFile: "/proc/\(identifier)/task/\(identifier)/children", encoding: .utf8)
    }
}
