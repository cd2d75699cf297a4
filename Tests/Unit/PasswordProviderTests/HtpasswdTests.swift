import Glibc
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct HtpasswdTests {
    static let bcrypt = "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"
    static let argon =
        "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"

    private static func flaws(_ text: String) -> [String] {
        do {
            _ = try Htpasswd(Array(text.utf8))
            return []
        } catch {
            return error.all.map(\.description)
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
        // Two of three take as long as this.
        #expect(file.typical?.encoded.hasPrefix("$argon2id$") == true)
        #expect(try Htpasswd([]).count == 0 && Htpasswd([]).typical == nil)
    }

    @Test(arguments: [
        ("alice", "no colon"), (":\(bcrypt)", "no name"), ("alice:", "supported format"),
        ("alice:*", "supported format"),
        ("alice:!", "supported format"), ("alice:secret", "supported format"),
        ("alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "supported format"),
        ("alice:$apr1$somesalt$aaaaaaaaaaaaaaaaaaaaaa", "supported format"),
        ("alice:rl.3StKT.4T8M", "supported format"),
        ("alice:$2x$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "supported format"),
        ("alice:\(bcrypt):x", "60 characters"), ("alice:\(bcrypt) ", "60 characters"),
        ("alice:$2y$31$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2", "cost above 15"),
        ("alice: \(bcrypt)", "supported format"), (" alice:\(bcrypt)", "begins or ends with a space"),
        ("alice :\(bcrypt)", "begins or ends with a space"), ("al\tice:\(bcrypt)", "control character"),
        ("al\0ice:\(bcrypt)", "control character"),
        ("\(String(repeating: "a", count: 256)):\(bcrypt)", "longer than 255"),
        ("alice:\(String(repeating: "a", count: 1100))", "longer than 1024"), ("alice:$5$rounds=9999999$s$x", "rounds"),
    ])
    func `refuses a line that it cannot use, by its number`(line: String, reason: String) {
        let flaws = Self.flaws("ok:\(Self.bcrypt)\n\(line)\n")
        #expect(flaws.count == 1)
        #expect(flaws.first?.hasPrefix("line 2: ") == true && flaws.first?.contains(reason) == true, "\(flaws)")
    }

    @Test func `refuses a user with two lines, and tells no name or hash`() {
        let flaws = Self.flaws("planted:\(Self.bcrypt)\nx:\(Self.bcrypt)\nplanted:\(Self.argon)\nsecretline\n")
        #expect(flaws.count == 2)
        #expect(flaws.first == "line 3: a user who has a line already")
        #expect(!flaws.joined().contains("planted") && !flaws.joined().contains("secretline"))
    }

    @Test func `refuses names that are no text`() {
        #expect(throws: Htpasswd.Flaws.self) { try Htpasswd([0xFF, 0x3A] + Array(Self.bcrypt.utf8)) }
    }

    @Test func `tells of a broken file no more than anybody reads`() {
        #expect(Self.flaws(String(repeating: "x\n", count: 1000)).count == 20)
    }

    // MARK: - Reading again

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

    @Test func `reads a file again that was written within the grain of its times`() throws {
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

    @Test func `keeps the users of the last good file`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        try folder.write("alice:\(Self.bcrypt)\nbob\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .refused("line 2: no colon"))
        #expect(file.refresh(now: Self.now(60)) == .stillRefused)
        #expect(file.users.count == 1 && file.failure == "line 2: no colon")
        try folder.write("bob:\(Self.bcrypt)\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .changed)
        #expect(file.failure == nil && file.users.hash(of: Array("bob".utf8)) != nil)
    }

    @Test func `keeps the users of a file that is gone, and takes it back`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        let file = try UserFile(path: path)
        #expect(unsafe unlink(path) == 0)
        guard case .refused = file.refresh(now: Self.now(60)) else {
            Issue.record("a missing file was used")
            return
        }
        #expect(file.users.count == 1)
        try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        #expect(file.refresh(now: Self.now(60)) == .changed)
    }

    @Test func `refuses a file that everybody may write to`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("alice:\(Self.bcrypt)\n", to: "users")
        #expect(unsafe chmod(path, 0o646) == 0)
        #expect(throws: Htpasswd.Flaws.self) { try UserFile(path: path) }
        #expect(unsafe chmod(path, 0o640) == 0)
        let file = try UserFile(path: path)
        #expect(unsafe chmod(path, 0o666) == 0)
        #expect(file.refresh(now: Self.now(60)) == .refused("everybody may write to it"))
    }

    @Test(arguments: ["/dev/null", "/tmp", "/nonexistent/users", "a\0b"])
    func `refuses what is no file`(path: String) {
        #expect(throws: Htpasswd.Flaws.self) { try UserFile(path: path) }
    }
}
