import Foundation
import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

/// The bytes of a list in memory, and how often it was read.
private final class ListInMemory: DenyListBytes {
    let bytes: [UInt8]
    let reads = Box(0)
    /// Whether reading fails.
    let isBroken = Box(false)

    init(_ text: String) { bytes = Array(text.utf8) }

    var size: Int64 { Int64(bytes.count) }

    func read(at offset: Int64, count: Int) throws(DenyListError) -> [UInt8] {
        reads.withLock { $0 += 1 }
        if isBroken.value { throw DenyListError("broken") }
        let start = min(Int(offset), bytes.count)
        return Array(bytes[start..<min(start + count, bytes.count)])
    }
}

private func hexadecimal(_ text: String, _ width: Int = 40, capital: Bool = true) -> String {
    let digits = Array((capital ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
    let all = SHA1.digest(Array(text.utf8)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: all.prefix(width), as: UTF8.self)
}

@Suite struct DenyListTests {
    /// A list of `password0` to `password<count - 1>`.
    private static func text(
        _ count: Int, width: Int = 40, capital: Bool = true, end: String = "\n", counted: Bool = true
    ) -> String {
        let lines = (0..<count).map { hexadecimal("password\($0)", width, capital: capital) }.sorted()
        return lines.enumerated().map { "\($1)\(counted ? ":\($0 * 37 % 1000 + 1)" : "")\(end)" }.joined()
    }

    private func contains(_ list: DenyList<ListInMemory>, _ password: String) throws -> Bool {
        try list.contains(SHA1.digest(Array(password.utf8)))
    }

    @Test(arguments: [1, 2, 3, 7, 100, 1000])
    func `has every password that is on it, and no other`(count: Int) throws {
        for (capital, end, counted) in [(true, "\n", true), (false, "\r\n", true), (true, "\n", false)] {
            let text = Self.text(count, capital: capital, end: end, counted: counted)
            for text in [text, String(text.dropLast())] where text.count > 40 {
                let list = try DenyList(ListInMemory(text))
                for index in 0..<count { #expect(try contains(list, "password\(index)")) }
                for index in 0..<50 { #expect(try !contains(list, "other\(index)")) }
            }
        }
    }

    @Test(arguments: [16, 20, 39]) func `may be cut to prefixes`(width: Int) throws {
        let list = try DenyList(ListInMemory(Self.text(500, width: width)))
        #expect(list.width == width)
        for index in 0..<500 { #expect(try contains(list, "password\(index)")) }
        #expect(try !contains(list, "other"))
    }

    @Test func `is searched with few reads of few bytes`() throws {
        let bytes = ListInMemory(Self.text(20_000))
        let list = try DenyList(bytes)
        bytes.reads.withLock { $0 = 0 }
        for index in 0..<100 { _ = try contains(list, "password\(index)") }
        #expect(bytes.reads.value <= 100 * 24, "\(bytes.reads.value)")
    }

    private static let line = String(repeating: "A", count: 40)

    @Test(arguments: [
        "", "\n", "hello\n", "AAAA:1\n", String(repeating: "A", count: 15) + "\n",
        String(repeating: "A", count: 41) + "\n",
        "\u{FEFF}\(line)\n", "\(line)\n\n\(line)\n", "\(line):\n", "\(line):x\n", "\(line) 1\n", "\(line):1 \n",
        "\(line):1\nBBBB:1\n", "\(line):1\n" + String(repeating: "B", count: 39) + "G:1\n",
        "\(line):" + String(repeating: "1", count: 100) + "\n", "\(line):1\n" + String(repeating: "x", count: 1000),
        String(repeating: "\0", count: 4096), "<html><body>404</body></html>\n",
    ])
    func `is rejected if a line is not a digest`(text: String) {
        #expect(throws: DenyListError.self) { try DenyList(ListInMemory(text)) }
    }

    @Test func `is rejected if it is not sorted`() {
        let text = Self.text(100).split(separator: "\n").reversed().joined(separator: "\n")
        let error = #expect(throws: DenyListError.self) { try DenyList(ListInMemory(text)) }
        #expect(error?.description.contains("not sorted") == true)
        var lines = Self.text(40_000).split(separator: "\n")
        lines.append(lines[0])
        #expect(throws: DenyListError.self) { try DenyList(ListInMemory(lines.joined(separator: "\n"))) }
    }

    @Test func `fails if it becomes unreadable, or changes under the search`() throws {
        let bytes = ListInMemory(Self.text(100))
        let list = try DenyList(bytes)
        bytes.isBroken.withLock { $0 = true }
        #expect(throws: DenyListError.self) { try contains(list, "password1") }
    }
}

@Suite struct DenyFileTests {
    private func bench(_ passwords: [String], in folder: TemporaryFolder) throws -> Bench {
        let lines = passwords.map { hexadecimal($0) }.sorted()
        try folder.write(lines.map { "\($0):7\n" }.joined(), to: "denied")
        return try Bench(["deny_file: denied"], file: folder.file("config.yaml"))
    }

    @Test func `rejects a breached password wherever one is set`() async throws {
        let folder = try TemporaryFolder()
        let bench = try bench(["battery staple", "\u{E9}\u{E9}\u{E9}\u{E9}\u{E9}\u{E9}\u{E9}\u{E9}"], in: folder)
        let error = try #require(await bench.change("alice", from: Bench.alice, to: "battery staple"))
        #expect(error.code == "password.breached" && error.disposition == .malformed)
        #expect(error.bodyErrors.map(\.pointer) == ["/new_password"] && error.bodyErrors.map(\.code) == [.breached])
        // In the form that is hashed.
        let decomposed = String(repeating: "e\u{301}", count: 8)
        #expect(await bench.change("alice", from: Bench.alice, to: decomposed)?.code == "password.breached")
        await #expect {
            try await bench.provider.makeRecord(name: "bob", password: Secret("battery staple"))
        } throws: {
            ($0 as? AuthenticationError)?.code == "password.breached"
        }
        await #expect {
            try await bench.provider.hashNewPassword(
                Secret("battery staple"), member: "password", in: bench.context())
        } throws: {
            ($0 as? AuthenticationError)?.bodyErrors.map(\.pointer) == ["/password"]
        }
        // Neither counts as an attempt, and existing passwords go on.
        #expect(bench.store.increments.value.isEmpty)
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        #expect(await bench.change("alice", from: Bench.alice, to: "battery staples") == nil)
    }

    @Test func `is unavailable if the file is damaged while it is in use`() async throws {
        let folder = try TemporaryFolder()
        let bench = try bench((0..<100).map { "password\($0)" }, in: folder)
        // The same file, overwritten in place.
        let handle = try #require(FileHandle(forWritingAtPath: folder.file("denied")))
        try handle.write(contentsOf: [UInt8](repeating: 0, count: 100 * 43))
        try handle.close()
        let error = await bench.change("alice", from: Bench.alice, to: "battery staple")
        #expect(error?.code == "password.deny_file_failed" && error?.disposition == .unavailable)
    }

    @Test func `that cannot be used is an error of the configuration`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("config.yaml")
        try folder.write("", to: "empty")
        try folder.write("\(hexadecimal("a"))\n\(hexadecimal("b"))\n\(hexadecimal("a"))\n", to: "unsorted")
        for (name, word) in [
            ("missing", "No such file"), ("empty", "empty"), ("unsorted", "not sorted"), (".", "regular"),
        ] {
            let errors = Bench.diagnostics(["deny_file: \(name)"], file: file).errors
            let first = try #require(errors.first)
            #expect(errors.count == 1 && first.code == "config.file_unreadable" && first.location.column == 12)
            #expect(first.text.contains(word), "\(first)")
        }
    }
}
