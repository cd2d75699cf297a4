import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletSessionTesting
import Testing

@testable import MartletSession

@Suite struct SessionSealTests {
    private let sessionKey = SessionKey(lookup: [UInt8](repeating: 1, count: 24))
    private let key = Secret([UInt8](repeating: 2, count: 32))
    private let record = SessionRecord(
        subject: "usr_ann", provider: "apple", identity: .ann, created: 1_800_000_000_123, ends: 1_805_184_000_123)

    private var seal: SessionSeal { SessionSeal(sessionKey) }
    /// Seals of other sessions: one with another hash, one with another subject's tag.
    private var elsewhere: [SessionSeal] {
        var moved = sessionKey.keyHash
        moved[31] = moved[31] == 0x30 ? 0x31 : 0x30
        return [
            SessionSeal(SessionKey(tagDigits: sessionKey.tagDigits, keyHash: moved)),
            SessionSeal(SessionKey(tagDigits: Array(repeating: 0x30, count: 16), keyHash: sessionKey.keyHash)),
        ]
    }

    private func token(_ kind: SessionToken.Kind, _ byte: UInt8 = 3) -> SessionToken {
        SessionToken(
            kind, lookup: [UInt8](repeating: 1, count: 24), secret: Secret([UInt8](repeating: byte, count: 32)))
    }

    @Test func `opens a wrapped key only with its token, kind, expiry and session`() throws {
        let sealed = try seal.wrap(key, for: token(.access), expiry: 7)
        let opened = try #require(seal.unwrap(sealed, for: token(.access), expiry: 7))
        #expect(opened.key.copy == key.copy && !opened.isBound)
        #expect(seal.unwrap(sealed, for: token(.refresh), expiry: 7) == nil)
        #expect(seal.unwrap(sealed, for: token(.access, 4), expiry: 7) == nil)
        #expect(seal.unwrap(sealed, for: token(.access), expiry: 8) == nil)
        #expect(seal.open(sealed, under: token(.access)) == nil && seal.open(sealed, with: key) == nil)
        for other in elsewhere { #expect(other.unwrap(sealed, for: token(.access), expiry: 7) == nil) }
    }

    @Test func `a bound token's key has a mark that an earlier version takes for another key`() throws {
        let sealed = try seal.wrap(key, for: token(.access), expiry: 7, isBound: true)
        let opened = try #require(seal.unwrap(sealed, for: token(.access), expiry: 7))
        #expect(opened.key.copy == key.copy && opened.isBound)
        #expect(seal.unwrap(sealed, for: token(.access), expiry: 8) == nil)
        // As long as an earlier version would use it.
        let record = try seal.seal(record, with: key)
        #expect(seal.open(record, with: Secret(key.copy + [1])) == nil)
        for marked in [key.copy + [2], key.copy + [1, 1], Array(key.copy.dropLast())] {
            let other = try seal.wrap(Secret(marked), for: token(.access), expiry: 7)
            #expect(seal.unwrap(other, for: token(.access), expiry: 7) == nil)
        }
    }

    @Test func `opens a cookie's key only with its token, kind, expiry and session`() throws {
        let sealed = try seal.wrap(key, due: 5, for: token(.cookie), expiry: 7)
        let opened = try #require(seal.unwrapCookie(sealed, for: token(.cookie), expiry: 7))
        #expect(opened.key.copy == key.copy && opened.due == 5)
        let unused = try seal.wrap(key, due: nil, for: token(.cookie), expiry: 7)
        let first = try #require(seal.unwrapCookie(unused, for: token(.cookie), expiry: 7))
        #expect(first.key.copy == key.copy && first.due == nil)
        #expect(seal.unwrapCookie(sealed, for: token(.cookie, 4), expiry: 7) == nil)
        #expect(seal.unwrapCookie(sealed, for: token(.cookie), expiry: 8) == nil)
        let other = SessionToken(
            .cookie, lookup: token(.cookie).lookup, secret: token(.cookie).secret,
            check: [UInt8](repeating: 1, count: 8))
        #expect(seal.unwrapCookie(sealed, for: other, expiry: 7) == nil)
        for kind in [SessionToken.Kind.access, .refresh] {
            #expect(seal.unwrapCookie(sealed, for: token(kind), expiry: 7) == nil)
            let bearer = try seal.wrap(key, for: token(kind), expiry: 7)
            #expect(seal.unwrap(bearer, for: token(.cookie), expiry: 7) == nil)
        }
        // Neither of the two values that a cookie token opens stands in for the other.
        #expect(seal.unwrap(sealed, for: token(.cookie), expiry: 7) == nil)
        let access = try seal.wrap(key, for: token(.cookie), expiry: 7)
        #expect(seal.unwrap(access, for: token(.cookie), expiry: 7)?.key.copy == key.copy)
        #expect(seal.unwrapCookie(access, for: token(.cookie), expiry: 7) == nil)
        for other in elsewhere { #expect(other.unwrapCookie(sealed, for: token(.cookie), expiry: 7) == nil) }
    }

    @Test(arguments: [true, false])
    func `opens what a replaced cookie gets only with its token`(hasNext: Bool) throws {
        let next = [UInt8](repeating: 9, count: 32)
        let grace = CookieGrace(
            end: 1_800_000_030_000, key: key, replacement: hasNext ? Secret(next.map { $0 }) : nil)
        let sealed = try seal.seal(grace, under: token(.cookie))
        let opened = try #require(seal.openCookie(sealed, under: token(.cookie)))
        #expect(opened.end == grace.end && opened.key.copy == key.copy)
        #expect(opened.replacement?.copy == (hasNext ? next : nil))
        #expect(seal.openCookie(sealed, under: token(.cookie, 4)) == nil)
        #expect(seal.open(sealed, under: token(.cookie)) == nil)
        for other in elsewhere { #expect(other.openCookie(sealed, under: token(.cookie)) == nil) }
        for length in [0, 8, 39, 41, 71, 73, 112] {
            #expect(CookieGrace(Secret([UInt8](repeating: 1, count: length))) == nil)
        }
    }

    @Test func `opens a record only with its key and session`() throws {
        let sealed = try seal.seal(record, with: key)
        let opened = try #require(seal.open(sealed, with: key))
        #expect(opened.bytes == record.bytes && opened.claims == Identity.ann.claims)
        #expect(seal.open(sealed, with: Secret([UInt8](repeating: 5, count: 32))) == nil)
        for other in elsewhere { #expect(other.open(sealed, with: key) == nil) }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 0x80
            #expect(seal.open(changed, with: key) == nil)
        }
    }

    @Test(arguments: [false, true]) func `opens a pair only with the used token`(isBound: Bool) throws {
        let pair = SessionPair(
            access: Secret([UInt8](repeating: 6, count: 32)), accessExpiry: 1_800_000_900_000,
            refresh: Secret([UInt8](repeating: 7, count: 32)), key: key, graceEnd: 1_800_000_030_000, isBound: isBound)
        let sealed = try seal.seal(pair, under: token(.refresh))
        let opened = try #require(seal.open(sealed, under: token(.refresh)))
        #expect(opened.bytes.copy == pair.bytes.copy)
        #expect(opened.accessExpiry == 1_800_000_900_000 && opened.graceEnd == 1_800_000_030_000)
        // What an earlier version reads as the expiry is implausible, so that it does not use the pair.
        #expect(opened.isBound == isBound && (opened.bytes.copy[0] >= 0x80) == isBound)
        #expect(seal.open(sealed, under: token(.refresh, 4)) == nil)
        for other in elsewhere { #expect(other.open(sealed, under: token(.refresh)) == nil) }
    }

    private let lookup = [UInt8](repeating: 1, count: 24)
    private let client = SessionClient(
        deviceName: "Anna’s iPhone", userAgent: "App/1",
        address: [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1])

    @Test func `opens a listing only for its subject`() throws {
        let listing = SessionListing(
            provider: "苹果", created: 1_800_000_000_123, addressKey: seal.addressKey(lookup), client: client)
        let sealed = try seal.seal(listing, of: "usr_ann")
        let opened = try #require(seal.open(sealed, of: "usr_ann"))
        #expect(opened.provider == "苹果" && opened.created == 1_800_000_000_123)
        #expect(opened.client == client && opened.addressKey == seal.addressKey(lookup))
        // With the lookup half, a reader could forge tokens that look used.
        let bytes = listing.bytes
        #expect(!bytes.indices.contains { bytes[$0...].starts(with: lookup[8...]) })
        #expect(seal.open(sealed, of: "usr_bob") == nil)
        for other in elsewhere { #expect(other.open(sealed, of: "usr_ann") == nil) }
        #expect(SessionListing([1, 2, 3]) == nil && SessionListing([UInt8](repeating: 0xFF, count: 9)) == nil)
        for length in listing.bytes.indices { #expect(SessionListing(Array(listing.bytes.prefix(length))) == nil) }
        #expect(!opened.isBound)
        let bound = SessionListing(
            provider: "apple", created: 1, addressKey: seal.addressKey(lookup), client: client, isBound: true)
        let read = try #require(SessionListing(bound.bytes))
        #expect(read.isBound && read.client == client && read.provider == "apple" && read.created == 1)
    }

    @Test func `opens a sealed address only with its session's key`() throws {
        let six = (0..<16).map { UInt8($0) }
        for address in [client.address, six] {
            let sealed = try seal.sealedAddress(address, lookup: lookup).bytes
            #expect(seal.open(address: sealed, key: seal.addressKey(lookup)) == address)
            #expect(seal.open(address: sealed, key: seal.addressKey([UInt8](repeating: 2, count: 24))) == nil)
            #expect(seal.open(address: sealed, key: []) == nil)
            for other in elsewhere { #expect(other.open(address: sealed, key: seal.addressKey(lookup)) == nil) }
            let hash = try seal.sealedAddress(address, lookup: lookup, isLogin: true).bytes
            #expect(hash == Array(sealed.prefix(4)) && seal.open(address: hash, key: seal.addressKey(lookup)) == nil)
            #expect(try elsewhere[0].sealedAddress(address, lookup: lookup, isLogin: true).bytes != hash)
        }
        #expect(try seal.sealedAddress([], lookup: lookup).bytes.isEmpty)
        #expect(seal.open(address: [], key: seal.addressKey(lookup)) == nil)
    }

    @Test func `hashes a provider per subject`() {
        let hashes = ["usr_ann", "usr_bob"].flatMap { subject in
            ["apple", "wechat"].map { SessionSeal.providerHash($0, of: subject) }
        }
        #expect(Set(hashes).count == 4 && hashes.allSatisfy { $0.count == 8 })
        #expect(hashes[0] == SessionSeal.providerHash("apple", of: "usr_ann"))
    }

    @Test(arguments: ["", "{}", "[]", "null", "{\"v\":1}", "\u{FEFF}{}", "{\"v\":2"])
    func `rejects malformed records`(text: String) {
        #expect(SessionRecord(Array(text.utf8)) == nil)
    }

    @Test func `rejects records with a missing member, a wrong type or another version`() throws {
        let whole = try #require(JSON.parse(record.bytes, limits: .init(maximumDepth: 8, maximumBytes: 9999)).object)
        for member in whole.members {
            for value: JSONValue? in [nil, .null, .array([]), .bool(true), member.value.string == nil ? "1" : 1] {
                var changed = whole
                changed[member.name] = value
                #expect(SessionRecord(JSON.write(changed)) == nil)
            }
        }
        var later = whole
        later["v"] = 2
        #expect(SessionRecord(JSON.write(later)) == nil)
    }

    private static let thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

    @Test func `the record of a bound session has a version of its own`() throws {
        func read(_ change: (inout JSONObject) -> Void) throws -> SessionRecord? {
            var object = try #require(
                JSON.parse(record.bytes, limits: .init(maximumDepth: 8, maximumBytes: 9999)).object)
            change(&object)
            return SessionRecord(JSON.write(object))
        }
        #expect(try read { _ in }?.keyThumbprint == nil)
        let bound = record.bound(to: Self.thumbprint)
        let again = try #require(SessionRecord(bound.bytes))
        #expect(again.keyThumbprint == Self.thumbprint && again.bytes == bound.bytes)
        #expect(again.renewed(by: record.proof).keyThumbprint == Self.thumbprint)
        let renewed = again.renewed(by: SessionProof(authTime: record.authTime, acr: "mfa"))
        #expect(SessionRecord(renewed.bytes)?.keyThumbprint == Self.thumbprint)
        // A thumbprint that the version does not announce, and a version without one.
        let rejected: [(JSONValue, JSONValue?)] = [
            (1, .string(Self.thumbprint)), (1, .null), (2, nil), (2, .null), (2, ""), (2, 1),
            (2, .string(String(Self.thumbprint.dropLast()))), (2, .string(Self.thumbprint + "=")),
            (2, .string(Self.thumbprint + "A")), (3, .string(Self.thumbprint)),
        ]
        for (version, thumbprint) in rejected {
            let changed = try read {
                $0["v"] = version
                $0["jkt"] = thumbprint
            }
            #expect(changed == nil, "\(version) \(String(describing: thumbprint))")
        }
        let whole = try read {
            $0["v"] = 2
            $0["jkt"] = .string(Self.thumbprint)
        }
        #expect(whole?.keyThumbprint == Self.thumbprint)
    }

    @Test func `does not seal a record that it could not decode`() {
        var deep = JSONValue.array([])
        for _ in 0..<63 { deep = .array([deep]) }
        let identity = Identity(
            providerSubject: "1", issuer: "i", claims: ["deep": deep], authTime: record.authTime,
            issuedAt: record.authTime, expiresAt: record.authTime)
        let made = SessionRecord(subject: "s", provider: "p", identity: identity, created: 0, ends: 1)
        let error = #expect(throws: SessionError.self) { try seal.seal(made, with: key) }
        #expect(error?.code == .sessionRecordTooLarge)
    }
}
