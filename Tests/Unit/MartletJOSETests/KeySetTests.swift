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
        #expect(set.skipped.map(\.id?.text) == ["EC"] && set.skipped.allSatisfy(\.isOfAnotherUse))
        let damaged = try Self.set([Self.entry(Self.rsa.get()), "{\"kty\":\"EC\",\"kid\":\"bad\",\"crv\":\"P-256\"}"])
        #expect(damaged.skipped.map(\.isOfAnotherUse) == [false])
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

    @Test func `skips short keys`() throws {
        let rsa = try Self.entry(Self.rsa.get())
        #expect(try Self.set([Self.entry(Self.weak.get()), rsa]).keys.keys.map(\.text) == ["RSA"])
    }

    /// Whether each key's signature verifies with the key of this ID.
    static func verifies(
        _ set: KeySet, _ id: String, _ key: SigningKey, as algorithm: SignatureAlgorithm
    ) throws -> Bool {
        let message = Array("x".utf8)
        let signature = try key.signature(over: message, as: algorithm.rawValue)
        let name = try #require(KeyID(id))
        return try #require(set.keys[name]).verify(signature: signature, signingInput: message, as: algorithm)
    }

    @Test func `a key that cannot verify is no second one with the same ID`() throws {
        let (rsa, other) = (try Self.rsa.get(), try SigningKey("RSA"))
        for change in [
            Change(name: "use", value: "\"enc\""), Change(name: "alg", value: "\"RSA-OAEP\""),
            Change(name: "key_ops", value: "[\"decrypt\"]"), Change(name: "n", value: "\"AQAB\""),
        ] {
            for entries in [[try Self.entry(rsa), try Self.entry(other, change)]].flatMap({ [$0, $0.reversed()] }) {
                let set = try Self.set(Array(entries))
                #expect(try Self.verifies(set, "RSA", rsa, as: .rs256) && !Self.verifies(set, "RSA", other, as: .rs256))
                #expect(set.skipped.map(\.id?.text) == ["RSA"])
            }
        }
    }

    @Test func `of several keys with one ID, kind and algorithm choose, then each is tried`() throws {
        let (rsa, other, curve) = (try Self.rsa.get(), try SigningKey("RSA"), try SigningKey("RSA", .p256))
        let set = try Self.set(
            [
                Self.entry(rsa, Change(name: "alg", value: "\"RS384\"")), Self.entry(rsa), Self.entry(other),
                Self.entry(curve),
            ], [.rs256, .rs384, .es256])
        #expect(set.skipped.isEmpty && set.onlyKey != nil)
        #expect(try Self.verifies(set, "RSA", rsa, as: .rs256) && Self.verifies(set, "RSA", rsa, as: .rs384))
        #expect(try Self.verifies(set, "RSA", other, as: .rs256) && Self.verifies(set, "RSA", curve, as: .es256))
        #expect(try !Self.verifies(set, "RSA", other, as: .rs384))
        let key = try #require(set.onlyKey)
        #expect(key.algorithms == [.rs384, .rs256, .es256])
        #expect(!key.verify(signature: [1], signingInput: [1], as: .rs256))
    }

    @Test func `at most four keys with one ID are tried`() throws {
        let keys = try (0..<5).map { _ in try SigningKey("EC", .p256) }
        let set = try Self.set([Self.entry(keys[0])] + keys.map { try Self.entry($0) })
        for (index, key) in keys.enumerated() { #expect(try Self.verifies(set, "EC", key, as: .es256) == (index < 4)) }
        #expect(set.skipped.map(\.reason) == ["too many keys have this kid"])
    }

    @Test func `the only usable key may be without an ID`() throws {
        let encrypting = try Self.entry(Self.elliptic.get(), Change(name: "use", value: "\"enc\""))
        let set = try Self.set([encrypting, Self.entry(Self.rsa.get(), Change(name: "kid", value: nil))])
        #expect(set.onlyKey != nil)
    }

    @Test(arguments: ["n", "e"])
    func `drops leading zero bytes of an RSA key`(member: String) throws {
        let value = try #require(try Self.rsa.get().jwk()[member])
        let bytes = try #require(Base64URL.decode(Array(value.utf8)))
        let change = Change(name: member, value: "\"\(Base64URL.encode([0] + bytes))\"")
        let set = try Self.set([Self.entry(Self.rsa.get(), change), Self.entry(Self.elliptic.get())])
        #expect(set.skipped.isEmpty && set.keys.count == 2)
        #expect(try Self.verifies(set, "RSA", Self.rsa.get(), as: .rs256))
        let id = try #require(KeyID("RSA"))
        #expect(try set.keys[id]?.parts.thumbprint == Self.set([Self.entry(Self.rsa.get())]).keys[id]?.parts.thumbprint)
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
