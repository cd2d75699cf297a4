import MartletTraffic
import Testing

@Suite struct RateKeyTests {
    private func key(_ build: (inout RateKeyBuilder) -> Void) -> RateKey {
        var builder = RateKeyBuilder()
        build(&builder)
        return builder.build()
    }

    private func text(_ parts: String...) -> RateKey {
        key { builder in
            for part in parts { unsafe Array(part.utf8).withUnsafeBufferPointer { unsafe builder.add($0) } }
        }
    }

    private func host(_ text: String) -> RateKey {
        key { builder in unsafe Array(text.utf8).withUnsafeBufferPointer { unsafe builder.add(host: $0) } }
    }

    private func address(_ bytes: [UInt8]) -> RateKey {
        key { builder in builder.add(address: bytes.span) }
    }

    private var missing: RateKey { key { $0.addMissing() } }

    @Test func `parts are not shifted into each other`() {
        #expect(text("a", "b") == text("a", "b"))
        #expect(text("ab", "") != text("a", "b") && text("", "ab") != text("ab", ""))
        #expect(text("") != missing)
        #expect(text("abcdefgh", "") != text("abcdefg", "h") && text("abcdefghi") != text("abcdefgh\u{0}i"))
        let texts = (0..<40).map { String(repeating: "x", count: $0) }
        #expect(Set(texts.map { text($0) }).count == 40)
        #expect(RateKey.hash("a") == RateKey.hash("a") && RateKey.hash("a") != RateKey.hash("b"))
    }

    @Test func `hosts are equal in any case, with or without port and dot`() {
        let example = host("example.com")
        for other in ["EXAMPLE.com", "example.com:8080", "example.com.", "Example.Com.:443"] {
            #expect(host(other) == example)
        }
        #expect(host("example.org") != example && host("[::1]:80") == host("[::1]") && host("[::1]") != host("[::2]"))
        #expect(host("") == missing && host(":80") == missing)
    }

    @Test func `addresses count by IPv4 address, or by the /64`() {
        let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xFF, 0xFF]
        #expect(address(mapped + [192, 0, 2, 1]) != address(mapped + [192, 0, 2, 2]))
        let net: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 1]
        #expect(address(net + [0, 0, 0, 0, 0, 0, 0, 1]) == address(net + [9, 9, 9, 9, 9, 9, 9, 9]))
        let next: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 2]
        #expect(address(net + [0, 0, 0, 0, 0, 0, 0, 1]) != address(next + [0, 0, 0, 0, 0, 0, 0, 1]))
        #expect(address([]) == missing && address(Array(repeating: 0, count: 16)) == missing)
    }
}
