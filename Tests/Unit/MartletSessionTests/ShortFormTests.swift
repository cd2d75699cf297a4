import MartletCore
import MartletCrypto
import MartletProvider
import MartletSessionTesting
import Testing

@testable import MartletSession

@Suite struct ShortFormTests {
    private static let forms: [ShortForm] = [.record, .listing, .claims]

    @Test(arguments: [0, 1, 64, 1000, 64 * 1024])
    func `gives back what it was made of, whatever that is`(count: Int) throws {
        for form in Self.forms {
            for bytes in [[UInt8](repeating: 0x61, count: count), try RandomBytes.make(count)] {
                let packed = try #require(form.pack(bytes))
                #expect(form.unpack(Secret(packed))?.copy == bytes)
            }
        }
    }

    @Test func `is not read where it is cut, has more behind it, or is another's`() throws {
        let bytes = SessionRecord(
            subject: "usr_ann", provider: "apple", identity: .ann, created: 1_800_000_000_123, ends: 1_805_184_000_123
        ).bytes
        let packed = try #require(ShortForm.record.pack(bytes))
        #expect(packed.count < bytes.count / 2)
        for length in 0..<packed.count { #expect(ShortForm.record.unpack(Secret(Array(packed[..<length]))) == nil) }
        #expect(ShortForm.record.unpack(Secret(packed + [0])) == nil)
        #expect(ShortForm.listing.unpack(Secret(packed))?.copy != bytes)
    }

    @Test func `is not read beyond its limit`() throws {
        // A bomb: 256 KiB in some hundred bytes.
        let bomb = try #require(ShortForm.claims.pack([UInt8](repeating: 0, count: 256 * 1024)))
        #expect(bomb.count < 1024)
        #expect(ShortForm.claims.unpack(Secret(bomb))?.count == 256 * 1024)
        #expect(ShortForm.record.unpack(Secret(bomb)) == nil)
        #expect(ShortForm.record.pack([UInt8](repeating: 0, count: SessionRecord.maximumBytes + 1)) == nil)
    }

    @Test func `random bytes are no short form that harms`() throws {
        for _ in 0..<2000 {
            let bytes = try RandomBytes.make(Int.random(in: 0..<200))
            for form in Self.forms { #expect(form.unpack(Secret(bytes)).map { $0.count <= 256 * 1024 } ?? true) }
        }
    }
}
