import MartletCore
import MartletCrypto
import Testing

@Suite struct PasswordHashTests {
    /// A password and a hash of it from another tool.
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let password: String
        let hash: String
        var testDescription: String { name }
    }

    static let vectors = [
        Vector(
            name: "bcrypt 2y", password: "correct horse",
            hash: "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"),
        Vector(
            name: "bcrypt of nothing", password: "",
            hash: "$2y$05$abcdefghijklmnopqrstuu0oImNDIy4flhldV9YqunRgBAePKmw7m"),
        Vector(
            name: "bcrypt of UTF-8", password: "p\u{E4}ssword",
            hash: "$2y$05$abcdefghijklmnopqrstuucZGbUxuMlEqps0qcu2pjhO7vaatQZIC"),
        Vector(
            name: "bcrypt of 72 bytes", password: String(repeating: "a", count: 72),
            hash: "$2y$05$abcdefghijklmnopqrstuuGUnCqbfgs3htOkLrFduUjAyLBw1Rq/u"),
        Vector(
            name: "bcrypt 2a", password: "U*U", hash: "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"),
        Vector(
            name: "bcrypt 2b", password: "correct horse",
            hash: "$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"),
        Vector(
            name: "Argon2id, two passes", password: "password",
            hash: "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"),
        Vector(
            name: "Argon2id, three passes", password: "password",
            hash: "$argon2id$v=19$m=12288,t=3,p=1$c29tZXNhbHQxMjM0NTY3OA$U78+ep5J4gyK8mPtaPr1GBOcQSB/Iwg4c984cgBVOlI"),
        Vector(
            name: "Argon2id of nothing", password: "",
            hash: "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$aAx7toQ1Yj5n/63voYXSSZUxkUKWtBfXe+mCDGfILFw"),
        Vector(
            name: "SHA-512 crypt", password: "Hello world!",
            hash: "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"
        ),
        Vector(
            name: "SHA-512 crypt with rounds", password: "password",
            hash:
                "$6$rounds=1000$somesalt12345678$iyWdbmqfhVWmudigBBCFJlx6xqG8r9K7SojXgljTw98k23M.18PwQiTBUn3IZWEkP8mEY5tU8jO91QnL9ZwBn1"
        ),
        Vector(
            name: "SHA-256 crypt", password: "Hello world!",
            hash: "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
        Vector(
            name: "yescrypt", password: "password",
            hash: "$y$j75$abcdefghijklmnopqrstu.$EzRF7erivvD/Eur6o/WbZS2F.c4jWwoldyOkUCZK2H6"),
        Vector(
            name: "GOST yescrypt", password: "password",
            hash: "$gy$j75$abcdefghijklmnopqrstu.$fplQ07DZp8ymtcBqj.cxW2WintUSQiuf4jIywBvwFY6"),
        Vector(
            name: "scrypt", password: "password",
            hash: "$7$8/..../....somesalt$4RLBH1nETSPhOYZaMFEPqZkfMWI4C4RGwqOxIiTs1FA"),
    ]

    @Test(arguments: vectors)
    func `matches the password of a hash from another tool`(vector: Vector) throws {
        let hash = try PasswordHash(vector.hash)
        #expect(try hash.matches(Secret(vector.password)))
        #expect(try !hash.matches(Secret(vector.password + "x")))
        #expect(hash.encoded == vector.hash)
    }

    @Test func `never matches a password whose end bcrypt would ignore`() throws {
        let hash = try PasswordHash("$2y$05$abcdefghijklmnopqrstuuGUnCqbfgs3htOkLrFduUjAyLBw1Rq/u")
        #expect(try !hash.matches(Secret(String(repeating: "a", count: 73))))
        #expect(try !hash.matches(Secret(String(repeating: "a", count: 600))))
    }

    @Test(arguments: vectors)
    func `never matches a password with a NUL after its end`(vector: Vector) throws {
        #expect(try !PasswordHash(vector.hash).matches(Secret(Array(vector.password.utf8) + [0])))
        #expect(try !PasswordHash(vector.hash).matches(Secret(Array(vector.password.utf8) + [0, 0x78])))
    }

    @Test func `does not match passwords that are too long for libcrypt`() throws {
        let hash = try PasswordHash("$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5")
        for count in [511, 512, 1024] { #expect(try !hash.matches(Secret(String(repeating: "a", count: count)))) }
    }

    @Test(arguments: 0..<64)
    func `does not match when any one character of the hash differs`(index: Int) throws {
        let vector = Self.vectors[index % Self.vectors.count]
        guard !vector.name.contains("two passes"), !vector.name.contains("of nothing") else { return }
        var text = Array(vector.hash.utf8)
        let position = text.count - 1 - index / 4
        text[position] = text[position] == UInt8(ascii: "e") ? UInt8(ascii: "u") : UInt8(ascii: "e")
        guard let hash = try? PasswordHash(text) else { return }
        #expect(try !hash.matches(Secret(vector.password)))
    }

    @Test func `makes Argon2id hashes with unique salts`() throws {
        let parameters = try Argon2Parameters(memory: 64, iterations: 1, parallelism: 2)
        let first = try PasswordHash.make(Secret("secret"), with: parameters)
        let second = try PasswordHash.make(Secret("secret"), with: parameters)
        #expect(first.encoded != second.encoded)
        let prefix = "$argon2id$v=19$m=64,t=1,p=2$"
        // 16 bytes of salt and 32 of tag, in base64 without padding.
        #expect(first.encoded.hasPrefix(prefix) && first.encoded.utf8.count == prefix.utf8.count + 22 + 1 + 43)
        for hash in [first, second] {
            let read = try PasswordHash(hash.encoded)
            #expect(try read.matches(Secret("secret")))
            #expect(try !read.matches(Secret("Secret")))
            #expect(try !read.matches(Secret("")))
        }
    }

    @Test func `makes decoys that require the same work`() throws {
        let parameters = try Argon2Parameters(memory: 64, iterations: 1, parallelism: 1)
        let decoy = try PasswordHash.decoy(parameters)
        #expect(try decoy.work == PasswordHash.make(Secret("secret"), with: parameters).work)
        #expect(try !decoy.matches(Secret("")))
    }

    @Test func `is always printed redacted`() throws {
        let hash = try PasswordHash(Self.vectors[0].hash)
        #expect("\(hash)" == "<redacted>")
        #expect(String(reflecting: hash) == "<redacted>")
        var dumped = ""
        dump(hash, to: &dumped)
        #expect(!dumped.contains("abcdefghij"))
    }

    @Test(arguments: [
        ("m=19456,t=2,p=1", false), ("m=19456,t=3,p=1", false), ("m=65536,t=2,p=1", false), ("m=19455,t=2,p=1", true),
        ("m=65536,t=1,p=1", true), ("m=19456,t=2,p=4", false),
    ])
    func `needs a rehash if it requires less work`(parameters: String, expected: Bool) throws {
        let tail = "$c29tZXNhbHQxMjM0NTY3OA$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"
        #expect(try PasswordHash("$argon2id$v=19$\(parameters)\(tail)").needsRehash(.standard) == expected)
    }

    @Test func `needs a rehash with a short salt, a short tag or another algorithm`() throws {
        let short = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$DEwLbbIZGUtgBuB4gYok6r6hNvevYZoxkwMQ5/LXSaU"
        #expect(try PasswordHash(short).needsRehash(.standard))
        let shortTag = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$DEwLbbIZGUtgBuB4gYok6g"
        #expect(try PasswordHash(shortTag).needsRehash(.standard))
        for vector in Self.vectors where !vector.hash.hasPrefix("$argon2id") {
            #expect(try PasswordHash(vector.hash).needsRehash(.standard))
        }
    }

    @Test(arguments: [
        (47_104, 1, true), (19_456, 2, true), (12_288, 3, true), (9_216, 4, true), (7_168, 5, true), (65_536, 1, true),
        (47_103, 1, false), (19_455, 2, false), (7_167, 16, false), (8, 1, false),
    ])
    func `knows which parameters are recommended`(memory: Int, iterations: Int, expected: Bool) throws {
        let parameters = try Argon2Parameters(memory: memory, iterations: iterations, parallelism: 1)
        #expect(parameters.areRecommended == expected)
    }
}
