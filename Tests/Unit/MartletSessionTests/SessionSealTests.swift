import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletSessionTesting
import Testing

@testable import MartletSession

@Suite struct SessionSealTests {
    private let place = SessionPlace(lookup: [UInt8](repeating: 1, count: 24))
    private let key = Secret([UInt8](repeating: 2, count: 32))
    private let record = SessionRecord(
        subject: "usr_ann", provider: "apple", identity: .ann, created: 1_800_000_000_123, ends: 1_805_184_000_123)

    private var seal: SessionSeal { SessionSeal(place) }
    /// The seals of the same session elsewhere: another hash, or another subject's tag.
    private var elsewhere: [SessionSeal] {
        var moved = place.filing
        moved[63] = moved[63] == 0x30 ? 0x31 : 0x30
        return [
            SessionSeal(SessionPlace(tagDigits: place.tagDigits, filing: moved)),
            SessionSeal(SessionPlace(tagDigits: Array(repeating: 0x30, count: 16), filing: place.filing)),
        ]
    }

    private func token(_ kind: SessionToken.Kind, _ byte: UInt8 = 3) -> SessionToken {
        SessionToken(
            kind, lookup: [UInt8](repeating: 1, count: 24), secret: Secret([UInt8](repeating: byte, count: 32)))
    }

    @Test func `opens a wrap for its token, kind, end and place alone`() throws {
        let sealed = try seal.wrap(key, for: token(.access), expiry: 7)
        #expect(seal.unwrap(sealed, for: token(.access), expiry: 7)?.copy == key.copy)
        #expect(seal.unwrap(sealed, for: token(.refresh), expiry: 7) == nil)
        #expect(seal.unwrap(sealed, for: token(.access, 4), expiry: 7) == nil)
        #expect(seal.unwrap(sealed, for: token(.access), expiry: 8) == nil)
        #expect(seal.open(sealed, under: token(.access)) == nil && seal.open(sealed, with: key) == nil)
        for other in elsewhere { #expect(other.unwrap(sealed, for: token(.access), expiry: 7) == nil) }
    }

    @Test func `opens a record with its key in its place alone`() throws {
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

    @Test func `opens a pair for the spent token alone`() throws {
        let pair = SessionPair(
            access: Secret([UInt8](repeating: 6, count: 32)), accessExpiry: -1,
            refresh: Secret([UInt8](repeating: 7, count: 32)), key: key, graceEnd: 1_800_000_030_000)
        let sealed = try seal.seal(pair, under: token(.refresh))
        let opened = try #require(seal.open(sealed, under: token(.refresh)))
        #expect(opened.bytes.copy == pair.bytes.copy)
        #expect(opened.accessExpiry == -1 && opened.graceEnd == 1_800_000_030_000)
        #expect(seal.open(sealed, under: token(.refresh, 4)) == nil)
        for other in elsewhere { #expect(other.open(sealed, under: token(.refresh)) == nil) }
    }

    private let lookup = [UInt8](repeating: 1, count: 24)
    private let client = SessionClient(
        deviceName: "Anna’s iPhone", userAgent: "App/1",
        address: [UInt8](repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1])

    @Test func `opens a listing for its subject alone`() throws {
        let listing = SessionListing(
            provider: "苹果", created: 1_800_000_000_123, addressKey: seal.addressKey(lookup), client: client)
        let sealed = try seal.seal(listing, of: "usr_ann")
        let opened = try #require(seal.open(sealed, of: "usr_ann"))
        #expect(opened.provider == "苹果" && opened.created == 1_800_000_000_123)
        #expect(opened.client == client && opened.addressKey == seal.addressKey(lookup))
        // With it a reader could make tokens that look spent.
        let bytes = listing.bytes
        #expect(!bytes.indices.contains { bytes[$0...].starts(with: lookup[8...]) })
        #expect(seal.open(sealed, of: "usr_bob") == nil)
        for other in elsewhere { #expect(other.open(sealed, of: "usr_ann") == nil) }
        #expect(SessionListing([1, 2, 3]) == nil && SessionListing([UInt8](repeating: 0xFF, count: 9)) == nil)
        for length in listing.bytes.indices { #expect(SessionListing(Array(listing.bytes.prefix(length))) == nil) }
    }

    @Test func `reads a listing of before there were clients`() throws {
        let old = [0, 0, 0x01, 0xA3, 0x18, 0x5C, 0x50, 0x7B] + Array("apple".utf8)
        let listing = try #require(SessionListing(old))
        #expect(listing.provider == "apple" && listing.created == 1_800_000_000_123)
        #expect(listing.client == SessionClient() && listing.addressKey.isEmpty)
    }

    @Test func `opens a note with its session's key in its place alone`() throws {
        let six = (0..<16).map { UInt8($0) }
        for address in [client.address, six] {
            let note = try seal.note(address, lookup: lookup).bytes
            #expect(seal.open(note: note, key: seal.addressKey(lookup)) == address)
            #expect(seal.open(note: note, key: seal.addressKey([UInt8](repeating: 2, count: 24))) == nil)
            #expect(seal.open(note: note, key: []) == nil)
            for other in elsewhere { #expect(other.open(note: note, key: seal.addressKey(lookup)) == nil) }
            let mark = try seal.note(address, lookup: lookup, isLogin: true).bytes
            #expect(mark == Array(note.prefix(8)) && seal.open(note: mark, key: seal.addressKey(lookup)) == nil)
            #expect(try elsewhere[0].note(address, lookup: lookup, isLogin: true).bytes != mark)
        }
        #expect(
            try seal.note([], lookup: lookup).bytes.isEmpty && seal.open(note: [], key: seal.addressKey(lookup)) == nil)
    }

    @Test func `marks a provider by subject`() {
        let marks = ["usr_ann", "usr_bob"].flatMap { subject in
            ["apple", "wechat"].map { SessionSeal.providerMark($0, of: subject) }
        }
        #expect(Set(marks).count == 4 && marks.allSatisfy { $0.count == 16 })
        #expect(marks[0] == SessionSeal.providerMark("apple", of: "usr_ann"))
    }

    @Test(arguments: ["", "{}", "[]", "null", "{\"v\":1}", "\u{FEFF}{}", "{\"v\":2"])
    func `reads no record that is none`(text: String) {
        #expect(SessionRecord(Array(text.utf8)) == nil)
    }

    @Test func `reads no record that lacks a member, has one of another type, or is of another version`() throws {
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

    @Test func `does not seal what it could not read back`() {
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
