import MartletCore
import MartletJOSE
import MartletTesting
import Testing

@Suite struct KeySetTests {
    static let rsa = Result { try SigningKey("RSA") }
    static let elliptic = Result { try SigningKey("EC", .p256) }
    static let weak = Result { try SigningKey("WEAK", .rsa(bits: 1024)) }

    /// A key of a document with one member changed; `nil` removes it.
    struct Change: Sendable, CustomTestStringConvertible {
        let name: String
        let value: String?

        var testDescription: String { "\(name): \(value ?? "absent")" }
    }

    static func entry(_ key: SigningKey, _ change: Change? = nil) throws -> String {
        var members = try key.jwk().mapValues { "\"\($0)\"" }
        if let change { members[change.name] = change.value }
        return "{" + members.map { "\"\($0.key)\":\($0.value)" }.sorted().joined(separator: ",") + "}"
    }

    static func set(
        _ entries: [String], _ allowed: Set<SignatureAlgorithm> = [.rs256, .es256]
    ) throws(JOSEError) -> KeySet {
        try KeySet(document: Array("{\"keys\":[\(entries.joined(separator: ","))]}".utf8), allowing: allowed)
    }

    @Test func `parses RSA and P-256 keys and binds their algorithms`() throws {
        let set = try Self.set([Self.entry(Self.rsa.get()), Self.entry(Self.elliptic.get())])
        let message = Array("x".utf8)
        for (name, key, algorithm) in [
            ("RSA", try Self.rsa.get(), SignatureAlgorithm.rs256), ("EC", try Self.elliptic.get(), .es256),
        ] {
            let id = try #require(KeyID(name))
            let found = try #require(set.keys[id])
            #expect(found.algorithms == [algorithm])
            #expect(found.verify(signature: try key.signature(over: message), signingInput: message))
        }
        #expect(set.skipped.isEmpty)
    }

    @Test func `skips keys of an algorithm that is not allowed`() throws {
        let set = try Self.set([Self.entry(Self.rsa.get()), Self.entry(Self.elliptic.get())], [.rs256])
        #expect(set.keys.keys.map(\.text) == ["RSA"])
        #expect(set.skipped.map(\.id?.text) == ["EC"])
    }

    static let harmless: [Change] = [
        Change(name: "use", value: nil), Change(name: "alg", value: nil),
        Change(name: "key_ops", value: "[\"verify\"]"),
        Change(name: "x5c", value: "[\"AAAA\"]"), Change(name: "x5u", value: "\"https://evil.example\""),
        Change(name: "more", value: "{}"),
    ]

    @Test(arguments: harmless)
    func `accepts keys with fewer or more optional members`(change: Change) throws {
        #expect(try Self.set([Self.entry(Self.rsa.get(), change)]).keys.count == 1)
    }

    static let harmful: [Change] = [
        Change(name: "use", value: "\"enc\""), Change(name: "use", value: "null"),
        Change(name: "alg", value: "\"PS256\""),
        Change(name: "alg", value: "\"ES256\""), Change(name: "alg", value: "\"HS256\""),
        Change(name: "alg", value: "1"),
        Change(name: "key_ops", value: "[\"sign\"]"), Change(name: "key_ops", value: "\"verify\""),
        Change(name: "kty", value: "\"oct\""),
        Change(name: "kty", value: "\"rsa\""), Change(name: "kty", value: nil), Change(name: "kid", value: nil),
        Change(name: "kid", value: "\"\""),
        Change(name: "kid", value: "1"), Change(name: "kid", value: "\"a b\""), Change(name: "n", value: nil),
        Change(name: "n", value: "\"\""),
        Change(name: "n", value: "\"AQAB\""), Change(name: "n", value: "\"not base64\""), Change(name: "n", value: "1"),
        Change(name: "e", value: "\"Aw\""),
        Change(name: "e", value: "\"AQ\""), Change(name: "e", value: "\"AQAC\""), Change(name: "e", value: "\"AQAB=\""),
        Change(name: "e", value: nil),
    ]

    @Test(arguments: harmful)
    func `skips one key and uses the others`(change: Change) throws {
        let set = try Self.set([Self.entry(Self.rsa.get(), change), Self.entry(Self.elliptic.get())])
        #expect(set.keys.keys.map(\.text) == ["EC"])
        #expect(set.skipped.count == 1)
        // A key that is the only one needs no ID.
        if change.name == "kid", change.value == nil { return }
        #expect(throws: JOSEError(.badKeySet, "")) { try Self.set([Self.entry(Self.rsa.get(), change)]) }
    }

    @Test func `the only key may be without an ID, and then has its thumbprint`() throws {
        let unnamed = try Self.entry(Self.rsa.get(), Change(name: "kid", value: nil))
        let set = try Self.set([unnamed])
        let key = try #require(set.onlyKey)
        #expect(set.keys.keys.map(\.text) == [key.parts.thumbprint] && set.skipped.isEmpty)
        #expect(throws: JOSEError(.badKeySet, "")) { try Self.set([unnamed, unnamed]) }
        #expect(try Self.set([Self.entry(Self.rsa.get()), Self.entry(Self.elliptic.get())]).onlyKey == nil)
        // A key for encryption is no other one.
        let encrypting = try Self.entry(Self.elliptic.get(), Change(name: "use", value: "\"enc\""))
        #expect(try Self.set([Self.entry(Self.rsa.get()), encrypting]).onlyKey?.id.text == "RSA")
    }

    static let harmfulToCurves: [Change] = [
        Change(name: "crv", value: "\"P-384\""), Change(name: "crv", value: "\"P-521\""),
        Change(name: "crv", value: nil), Change(name: "x", value: "\"AAAA\""),
        Change(name: "y", value: nil),
        Change(name: "x", value: "\"\(String(repeating: "A", count: 43))\""), Change(name: "alg", value: "\"RS256\""),
    ]

    @Test(arguments: harmfulToCurves)
    func `skips an invalid P-256 key`(change: Change) throws {
        #expect(
            try Self.set([Self.entry(Self.rsa.get()), Self.entry(Self.elliptic.get(), change)]).keys.keys.map(\.text)
                == ["RSA"])
    }

    @Test func `skips short keys and all keys with a duplicate ID`() throws {
        let rsa = try Self.entry(Self.rsa.get())
        let twin = try Self.entry(Self.elliptic.get(), Change(name: "kid", value: "\"RSA\""))
        #expect(try Self.set([Self.entry(Self.weak.get()), rsa]).keys.keys.map(\.text) == ["RSA"])
        #expect(try Self.set([rsa, twin, Self.entry(Self.elliptic.get())]).keys.keys.map(\.text) == ["EC"])
        #expect(throws: JOSEError(.badKeySet, "")) { try Self.set([rsa, rsa]) }
    }

    @Test(arguments: ["n", "e"])
    func `skips an RSA key with a leading zero byte`(member: String) throws {
        let value = try #require(try Self.rsa.get().jwk()[member])
        let bytes = try #require(Base64URL.decode(Array(value.utf8)))
        let change = Change(name: member, value: "\"\(Base64URL.encode([0] + bytes))\"")
        let set = try Self.set([Self.entry(Self.rsa.get(), change), Self.entry(Self.elliptic.get())])
        #expect(set.keys.keys.map(\.text) == ["EC"])
        #expect(set.skipped.map(\.reason) == ["'\(member)' has a leading zero byte"])
    }

    @Test func `limits the document`() throws {
        let entry = try Self.entry(Self.rsa.get())
        let fillers = (0..<19).map { "{\"kid\":\"k\($0)\"}" }
        #expect(try Self.set([entry] + fillers).keys.count == 1)
        #expect(throws: JOSEError(.badKeySet, "")) { try Self.set([entry] + fillers + ["{}"]) }
        #expect(throws: JOSEError(.badKeySet, "")) {
            try Self.set([entry, "\"\(String(repeating: "x", count: 65_536))\""])
        }
        #expect(try Self.set([entry, "1", "null", "[]", "\"x\""]).skipped.count == 4)
        for text in ["", "[]", "{}", "null", "{\"keys\":{}}", "{\"keys\":[],\"keys\":[]}", "{\"keys\":[\(entry)]}x"] {
            #expect(throws: JOSEError(.badKeySet, "")) { try KeySet(document: Array(text.utf8), allowing: [.rs256]) }
        }
    }
}
