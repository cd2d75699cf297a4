import Foundation
import Glibc
import MartletTesting
import Testing

/// What a new user sees first: the demo prints commands, and each does what the line above it says.
@Suite struct `Demo` {
    @Test(arguments: [SIGTERM, SIGINT])
    func `every printed command responds as announced, and the demo leaves in good order`(signal: Int32) throws {
        let folder = try TemporaryFolder()
        let demo = try ChildProcess(Executable.martlet(), ["demo", "--listen", "127.0.0.1:0"], output: folder)
        try waitUntil("the demo prints its commands") { demo.output.contains("curl ") && demo.output.hasSuffix("\n") }
        pause(.milliseconds(200))
        let lines = demo.output.split(separator: "\n").map(String.init)
        #expect(try #require(lines.first).contains(#/^Open http://127\.0\.0\.1:[1-9][0-9]*/me in a browser, /#))
        let commands = zip(lines, lines.dropFirst()).filter { $1.hasPrefix("curl ") }
        #expect(commands.count >= 40)
        var subjects: [String] = []
        for (comment, command) in commands {
            let result = try run("/bin/bash", ["-c", command.replacing("curl -i", with: "curl -s -i")])
            let announced = comment.drop { !$0.isNumber }.prefix(3)
            #expect(
                result.output.hasPrefix("HTTP/1.1 \(announced) "),
                "\(comment)\n\(command.prefix(60))\n\(result.output.prefix(300))")
            #expect(
                !result.output.contains(".eyJ") || command.contains("/simulator/"), "a token came back: \(comment)")
            if command.contains("until=account.deleted") {
                #expect(result.output.contains(#""revoked_at_apple":true"#), "\(result.output)")
            }
            guard command.contains("Bearer $("), let found = result.output.firstMatch(of: /"x-auth-subject":"([^"]+)"/)
            else { continue }
            subjects.append(String(found.output.1))
        }
        // By Apple, by WeChat, by password, refreshed, and by Apple again.
        #expect(subjects.count == 5)
        #expect(Set(subjects).count == 2 && subjects[0] == subjects[1] && subjects[2] != subjects[0], "\(subjects)")
        let kept = try #require(demo.output.firstMatch(of: #/tee (/tmp/martlet-demo-[^/]+)/#)?.output.1)
        #expect(FileManager.default.fileExists(atPath: String(kept)))
        demo.kill(signal)
        #expect(try demo.wait() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: String(kept)), "the demo leaves something behind")
    }

    @Test func `serves TLS and HTTP/2 with a certificate that goes with it`() throws {
        let folder = try TemporaryFolder()
        let demo = try ChildProcess(
            Executable.martlet(), ["demo", "--tls", "--listen", "127.0.0.1:0"], output: folder)
        try waitUntil("the demo prints its commands") { demo.output.contains("curl ") && demo.output.hasSuffix("\n") }
        let commands = demo.output.split(separator: "\n").filter { $0.hasPrefix("curl ") && $0.contains("https://") }
        #expect(commands.count >= 20)
        #expect(demo.output.contains(#/^Open https://127\.0\.0\.1:[1-9][0-9]*/me in a browser, /#))
        let first = String(try #require(commands.first)).replacing("curl -i", with: "curl -s -i")
        #expect(try run("/bin/bash", ["-c", first]).output.hasPrefix("HTTP/2 200"))
        #expect(
            try run("/bin/bash", ["-c", first.replacing("curl ", with: "curl --http1.1 ")]).output.hasPrefix(
                "HTTP/1.1 200"))
        let kept = try #require(demo.output.firstMatch(of: #/--cacert (/tmp/martlet-demo-[^/]+)/#)?.output.1)
        let key = try FileManager.default.attributesOfItem(atPath: "\(kept)/key.pem")
        #expect(key[.posixPermissions] as? Int == 0o600)
        demo.kill(SIGTERM)
        #expect(try demo.wait() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: String(kept)), "the demo leaves something behind")
    }

    @Test func `two demos run side by side`() throws {
        let folder = try TemporaryFolder()
        let demos = try (0..<2).map { index in
            try ChildProcess(
                Executable.martlet(), ["demo", "--listen", "127.0.0.1:0"], output: folder, name: "demo\(index)")
        }
        for demo in demos { try waitUntil("both are there") { demo.output.contains("curl ") } }
        for demo in demos {
            demo.kill(SIGTERM)
            #expect(try demo.wait() == .exited(0))
        }
    }
}
