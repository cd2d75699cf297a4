import MartletCore
import MartletCrypto
import MartletSessionTesting
import Testing

@testable import MartletSession

@Suite struct SessionTokenTests {
    /// Bytes 0, 1, 2 and so on.
    private static func text(_ kind: SessionToken.Kind) -> [UInt8] {
        var text = Array(kind.prefix.utf8)
        Base64URL.append((0..<UInt8(kind == .access ? 56 : 64)).map { $0 }, to: &text)
        return text
    }

    @Test(arguments: SessionToken.Kind.allCases)
    func `reads what it writes`(kind: SessionToken.Kind) throws {
        let token = try #require(SessionToken(Self.text(kind), kind: kind))
        #expect(token.lookup == Array(0..<24))
        #expect(token.secret.copy == Array(24..<56))
        #expect(token.check == (kind == .access ? [] : Array(56..<64)))
        #expect(token.text.copy == Self.text(kind))
        #expect(token.text.count == kind.length && kind.length == (kind == .access ? 79 : 90))
    }

    @Test(arguments: SessionToken.Kind.allCases)
    func `accepts exactly one encoding`(kind: SessionToken.Kind) {
        let text = Self.text(kind)
        for length in 0..<text.count { #expect(SessionToken(Array(text[..<length]), kind: kind) == nil) }
        for behind in ["A", "=", "==", "\n", " "] { #expect(SessionToken(text + behind.utf8, kind: kind) == nil) }
        // Every byte at every index except the alphabet's, and nonzero padding bits at the end.
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for index in text.indices {
            for byte in UInt8.min...UInt8.max where byte != text[index] {
                var changed = text
                changed[index] = byte
                let isAllowed = index >= 4 && index < text.count - 1 && alphabet.contains(byte)
                let token = SessionToken(changed, kind: kind)
                if index < text.count - 1 { #expect((token != nil) == isAllowed) }
                if let token { #expect(token.text.copy == changed) }
            }
        }
    }

    @Test func `rejects tokens of the other kind`() {
        #expect(SessionToken(Self.text(.access), kind: .refresh) == nil)
        #expect(SessionToken(Self.text(.refresh), kind: .access) == nil)
        #expect(SessionToken(Array("mat_".utf8) + Self.text(.refresh)[4...], kind: .access) == nil)
        #expect(SessionToken(Array("mrt_".utf8) + Self.text(.access)[4...], kind: .refresh) == nil)
        for kind in [SessionToken.Kind.access, .refresh] {
            #expect(SessionToken(Self.text(.cookie), kind: kind) == nil)
            #expect(SessionToken(Self.text(kind), kind: .cookie) == nil)
        }
        #expect(Set(SessionToken.Kind.allCases.map(\.prefix)).count == 3)
    }

    @Test func `distinguishes tokens of its session from forged ones`() throws {
        let verifier = try RandomBytes.make(32)
        let secret = Secret(try RandomBytes.make(32))
        let check = SessionToken.check(of: secret, verifier: verifier)
        #expect(SessionToken(.refresh, lookup: [], secret: secret, check: check).isGenuine(verifier: verifier))
        for index in check.indices {
            var changed = check
            changed[index] ^= 1
            #expect(!SessionToken(.refresh, lookup: [], secret: secret, check: changed).isGenuine(verifier: verifier))
        }
        #expect(!SessionToken(.cookie, lookup: [], secret: secret, check: check).isGenuine(verifier: verifier))
        let cookie = SessionToken(cookie: secret, lookup: [], verifier: verifier)
        #expect(cookie.isGenuine(verifier: verifier) && cookie.check != check)
        let other = Secret(try RandomBytes.make(32))
        #expect(!SessionToken(.refresh, lookup: [], secret: other, check: check).isGenuine(verifier: verifier))
        #expect(!SessionToken(.refresh, lookup: [], secret: secret, check: []).isGenuine(verifier: verifier))
        // Bound to a key, it is genuine only with that.
        let bound = SessionToken.check(of: secret, verifier: verifier, boundTo: "a")
        let token = SessionToken(.refresh, lookup: [], secret: secret, check: bound)
        #expect(token.isGenuine(verifier: verifier, boundTo: "a") && bound != check)
        for other in [nil, "", "b", "ab"] { #expect(!token.isGenuine(verifier: verifier, boundTo: other)) }
    }

    @Test func `stores all sessions of a subject under one tag and each under its own hash`() throws {
        let subject = SubjectKey("usr_ann")
        let lookups = try (0..<50).map { _ in subject.tag + (try RandomBytes.make(16)) }
        let sessionKeys = lookups.map { SessionKey(lookup: $0) }
        #expect(sessionKeys.allSatisfy { $0.tagDigits == subject.tagDigits && $0.tagDigits.count == 16 })
        #expect(Set(sessionKeys.map(\.id)).count == 50 && Set(sessionKeys.map(\.revocationID)).count == 50)
        #expect(SubjectKey("usr_bob").tag != subject.tag && SubjectKey("usr_bob").name != subject.name)
        for (sessionKey, lookup) in zip(sessionKeys, lookups) {
            #expect(sessionKey.keyHash == Hexadecimal.encode(SHA256.digest(lookup).prefix(16)))
            #expect(sessionKey.id == "ses_" + String(decoding: sessionKey.keyHash, as: UTF8.self))
            let digits = String(decoding: sessionKey.keyHash.prefix(16), as: UTF8.self)
            #expect(sessionKey.revocationID == UInt64(digits, radix: 16))
            #expect(SessionKey.digits(of: sessionKey.id) == Array(sessionKey.keyHash))
        }
    }
}
