import Glibc
import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct HtpasswdTests {
    static let bcrypt = "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"
    static let argon =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"

    private static func errors(_ text: String) -> [String] {
        do {
            _ = try Htpasswd(Array(text.utf8))
            return []
        } catch {
            return error.errors.map(\.description)
        }
    }

    @Test func `reads users, and skips comments and empty lines`() throws {
        let file = try Htpasswd(
            Array("# people\n\nalice:\(Self.bcrypt)\r\nbob:\(Self.argon)\nJos\u{E9}:\(Self.argon)".utf8))
        #expect(file.count == 3 && file.weakLines == [3])
        #expect(file.hash(of: Array("alice".utf8))?.encoded == Self.bcrypt)
        #expect(file.hash(of: Array("Alice".utf8)) == nil)
        #expect(file.hash(of: Array("Jos\u{E9}".utf8)) != nil)
        #expect(file.hash(of: Array("Jose\u{301}".utf8)) == nil)
        // Two of the three have this cost.
        #expect(file.typical?.encoded.hasPrefix("$argon2id$") == true)
        #expect(try Htpasswd([]).count == 0 && Htpasswd([]).typical == nil)
    }

    @Test(arguments: [
        ("alice", "missing colon"), (":\(bcrypt)", "empty name"), ("alice:", "unsupported password hash format"),
        ("alice:*", "unsupported password hash format"),
        ("alice:!", "unsupported password hash format"), ("alice:secret", "unsupported password hash format"),
        ("alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "unsupported password hash format"),
        ("alice:$apr1$somesalt$aaaaaaaaaaaaaaaaaaaaaa", "unsupported password hash format"),
        ("alice:rl.3StKT.4T8M", "unsupported password hash format"),
        ("alice:$2x$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "unsupported password hash format"),
        ("alice:\(bcrypt):x", "60 characters"), ("alice:\(bcrypt) ", "60 characters"),
        ("alice:$2y$31$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "cost above 15"),
        ("alice: \(bcrypt)", "unsupported password hash format"), (" alice:\(bcrypt)", "begins or ends with a space"),
        ("alice :\(bcrypt)", "begins or ends with a space"), ("al\tice:\(bcrypt)", "control character"),
        ("al\0ice:\(bcrypt)", "control character"),
        ("\(String(repeating: "a", count: 256)):\(bcrypt)", "longer than 255"),
        ("alice:\(String(repeating: "a", count: 1100))", "longer than 1024"), ("alice:$5$rounds=9999999$s$x", "rounds"),
    ])
    func `rejects a line that it cannot use, by its number`(line: String, reason: String) {
        let errors = Self.errors("ok:\(Self.bcrypt)\n\(line)\n")
        #expect(errors.count == 1)
        #expect(errors.first?.hasPrefix("line 2: ") == true && errors.first?.contains(reason) == true, "\(errors)")
    }

    @Test func `rejects a user with two lines, and reports no name or hash`() {
        let errors = Self.errors("planted:\(Self.bcrypt)\nx:\(Self.bcrypt)\nplanted:\(Self.argon)\nsecretline\n")
        #expect(errors.count == 2)
        #expect(errors.first == "line 3: duplicate user")
        #expect(!errors.joined().contains("planted") && !errors.joined().contains("secretline"))
    }

    @Test func `rejects names that are not UTF-8`() {
        #expect(throws: Htpasswd.ParseError.self) { try Htpasswd([0xFF, 0x3A] + Array(Self.bcrypt.utf8)) }
    }

    @Test func `reports at most 20 errors`() {
        #expect(Self.errors(String(repeating: "x\n", count: 1000)).count == 20)
    }

    // MARK: - Refreshing

    private static func now(_ offset: Int64) -> UnixTime {
        Clock.system.unixTime.advanced(bySeconds: offset)
    }

    @Test func `reads a file again when it has changed`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        #expect(file.refresh(now: Self.now(60)) == .unchanged)
        try folder.write("alice:\(Self.bcrypt)\nbob:\(Self.bcrypt)\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .changed)
        #expect(file.users.count == 2)
        #expect(file.refresh(now: Self.now(60)) == .unchanged)
    }

    @Test func `reads a file again that was written within the resolution of its times`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        for name in ["bobby", "carol", "alice"] {
            #expect(file.refresh(now: Self.now(0)) == .unchanged)
            try folder.write("\(name):\(Self.bcrypt)\n", to: "users")
            #expect(file.refresh(now: Self.now(0)) == .changed)
            #expect(file.users.hash(of: Array(name.utf8)) != nil)
        }
    }

    @Test func `keeps the users of the last valid file`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        try folder.write("alice:\(Self.bcrypt)\nbob\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .failed("line 2: missing colon"))
        #expect(file.refresh(now: Self.now(60)) == .stillFailing)
        #expect(file.users.count == 1 && file.failure == "line 2: missing colon")
        try folder.write("bob:\(Self.bcrypt)\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .changed)
        #expect(file.failure == nil && file.users.hash(of: Array("bob".utf8)) != nil)
    }

    @Test func `keeps the users of a file that is gone, and reads it when it is back`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        #expect(unsafe unlink(path) == 0)
        guard case .failed = file.refresh(now: Self.now(60)) else {
            Issue.record("a missing file was used")
            return
        }
        #expect(file.users.count == 1)
        try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .changed)
    }

    @Test func `rejects a file that is world-writable`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        #expect(unsafe chmod(path, 0o646) == 0)
        #expect(throws: Htpasswd.ParseError.self) { try UserFile(path: path) }
        #expect(unsafe chmod(path, 0o640) == 0)
        let file = try UserFile(path: path)
        #expect(unsafe chmod(path, 0o666) == 0)
        #expect(file.refresh(now: Self.now(60)) == .failed("it is world-writable"))
    }

    @Test(arguments: ["/dev/null", "/tmp", "/nonexistent/users", "a\0b"])
    func `rejects what is not a regular file`(path: String) {
        #expect(throws: Htpasswd.ParseError.self) { try UserFile(path: path) }
    }
}
