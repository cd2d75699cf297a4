import MartletCore
import MartletTesting
import Testing

@testable import MartletHTTP

/// The first bytes of a connection and what they are, with what follows counted as `rest`.
private struct HeaderCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]
    let expected: String

    init(_ name: String, _ bytes: [UInt8], _ expected: String) {
        testDescription = name
        self.bytes = bytes
        self.expected = expected
    }

    init(_ name: String, _ line: String, _ expected: String) { self.init(name, Array(line.utf8), expected) }
}

private func describe(_ outcome: ProxyHeader.Outcome, of total: Int) -> String {
    switch outcome {
    case .needMore: return "incomplete"
    case .failure(let failure): return failure.code.rawValue
    case .complete(let count, let peer):
        let rest = count == total ? "" : " rest=\(total - count)"
        guard case .address(let address) = peer else { return "\(peer)\(rest)" }
        let isIPv4 = address.bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255])
        let text =
            isIPv4
            ? address.bytes.suffix(4).map(String.init).joined(separator: ".")
            : stride(from: 0, to: 16, by: 2).map {
                String(Int(address.bytes[$0]) << 8 | Int(address.bytes[$0 + 1]), radix: 16)
            }.joined(separator: ":")
        return "\(text) \(address.port)\(rest)"
    }
}

/// A version 2 header: the part after the signature, with the length filled in unless it is given.
private func binary(_ command: UInt8, _ family: UInt8, _ block: [UInt8], length: Int? = nil) -> [UInt8] {
    let count = length ?? block.count
    return ProxyHeader.signature
        + [command, family, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)] + block
}

private let ipv4Block: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 7, 0xDC, 0x04, 0x01, 0xBB]
private let ipv6Block: [UInt8] =
    [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 9, count: 16)
    + [0x00, 0x50, 0x01, 0xBB]

/// A header with a checksum extension, which `change` may spoil.
private func summed(_ change: UInt32 = 0, before: [UInt8] = [], after: [UInt8] = []) -> [UInt8] {
    var bytes = binary(0x21, 0x11, ipv4Block + before + [3, 0, 4, 0, 0, 0, 0] + after)
    let offset = 16 + 12 + before.count + 3
    let sum = ProxyHeader.crc32c(bytes.span, zeroing: offset) &+ change
    for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32(index))) }
    return bytes
}

@Suite struct `The PROXY protocol's header` {
    private static let longAddress = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"

    private static let lines: [HeaderCase] = [
        HeaderCase("IPv4", "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n", "192.0.2.1 56324"),
        HeaderCase("what follows", "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\nGET /", "192.0.2.1 56324 rest=5"),
        HeaderCase("a CRLF behind", "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n\r\n", "0.0.0.0 0 rest=2"),
        HeaderCase("IPv6", "PROXY TCP6 2001:db8::1 ::1 80 443\r\n", "2001:db8:0:0:0:0:0:1 80"),
        HeaderCase("IPv6 at length", "PROXY TCP6 2001:DB8:0:0:0:0:0:1 :: 80 443\r\n", "2001:db8:0:0:0:0:0:1 80"),
        HeaderCase("IPv6 that ends in zeros", "PROXY TCP6 fe80:: 1:2:3:4:5:6:7:: 1 2\r\n", "fe80:0:0:0:0:0:0:0 1"),
        HeaderCase("IPv4 in IPv6", "PROXY TCP6 ::ffff:192.0.2.1 ::1 80 443\r\n", "192.0.2.1 80"),
        HeaderCase(
            "the longest line", "PROXY TCP6 \(longAddress) \(longAddress) 65535 65535\r\n",
            "\(longAddress) 65535"),
        HeaderCase("nothing known", "PROXY UNKNOWN\r\n", "unknown"),
        HeaderCase("something said of nothing known", "PROXY UNKNOWN ::1 x 99999  \r\nG", "unknown rest=1"),
        HeaderCase(
            "the longest line of nothing known", "PROXY UNKNOWN\(String(repeating: " ", count: 92))\r\n", "unknown"),
        HeaderCase("nothing", "", "incomplete"),
        HeaderCase("a beginning", "PROXY TCP4 192.0", "incomplete"),
        HeaderCase("no LF yet", "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r", "incomplete"),
        HeaderCase("a request", "GET / HTTP/1.1\r\n\r\n", "proxy_protocol.bad_signature"),
        HeaderCase("a request that begins alike", "PROPFIND / HTTP/1.1\r\n", "proxy_protocol.bad_signature"),
        HeaderCase("TLS", [0x16, 0x03, 0x01], "proxy_protocol.bad_signature"),
        HeaderCase("lower case", "proxy TCP4 192.0.2.1 198.51.100.7 1 2\r\n", "proxy_protocol.bad_signature"),
        HeaderCase("a tab", "PROXY\tTCP4 192.0.2.1 198.51.100.7 1 2\r\n", "proxy_protocol.bad_signature"),
        HeaderCase("two spaces", "PROXY  TCP4 192.0.2.1 198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("two spaces inside", "PROXY TCP4 192.0.2.1  198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("a space at the end", "PROXY TCP4 192.0.2.1 198.51.100.7 1 2 \r\n", "proxy_protocol.bad_line"),
        HeaderCase("a tab inside", "PROXY TCP4 192.0.2.1\t198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("no family", "PROXY \r\n", "proxy_protocol.bad_line"),
        HeaderCase("another family", "PROXY UDP4 192.0.2.1 198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("a family in lower case", "PROXY tcp4 192.0.2.1 198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("almost UNKNOWN", "PROXY UNKNOWNS\r\n", "proxy_protocol.bad_line"),
        HeaderCase("a word too few", "PROXY TCP4 192.0.2.1 198.51.100.7 1\r\n", "proxy_protocol.bad_line"),
        HeaderCase("a word too many", "PROXY TCP4 192.0.2.1 198.51.100.7 1 2 3\r\n", "proxy_protocol.bad_line"),
        HeaderCase("a bare LF", "PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n", "proxy_protocol.bad_line"),
        HeaderCase("a bare CR", "PROXY TCP4 192.0.2.1 198.51.100.7 1 2\rG", "proxy_protocol.bad_line"),
        HeaderCase("NUL", "PROXY TCP4 192.0.2.1\u{0} 198.51.100.7 1 2\r\n", "proxy_protocol.bad_line"),
        HeaderCase("UTF-8", "PROXY UNKNOWN é\r\n", "proxy_protocol.bad_line"),
        HeaderCase(
            "a line too long", "PROXY UNKNOWN\(String(repeating: " ", count: 93))\r\n", "proxy_protocol.bad_line"),
        HeaderCase("an endless line", "PROXY \(String(repeating: "x", count: 200))", "proxy_protocol.bad_line"),
    ]

    private static let addresses: [HeaderCase] =
        [
            "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.04", "1.2.3.", "1..2.3", "1.2.3.4a", "0x1.2.3.4",
            "-1.2.3.4",
            "::1", "",
        ].map {
            HeaderCase("IPv4 '\($0)'", "PROXY TCP4 \($0) 1.2.3.4 1 2\r\n", "proxy_protocol.bad_address")
        }
        + [
            ":", ":::", "1:::2", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::",
            "1::2:3:4:5:6:7:8",
            "12345::", "g::", "[::1]", "::1%eth0", "::1.2.3", "::1.2.3.256", "1.2.3.4::", "1:2:3:4:5:6:7:1.2.3.4",
            ":1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:", "1.2.3.4", "::1.2.3.4:5",
        ].map {
            HeaderCase("IPv6 '\($0)'", "PROXY TCP6 \($0) ::1 1 2\r\n", "proxy_protocol.bad_address")
        }
        + ["65536", "-1", "+1", "080", "00", "0x50", "http", "", "123456"].map {
            HeaderCase("port '\($0)'", "PROXY TCP4 1.2.3.4 1.2.3.4 \($0) 2\r\n", "proxy_protocol.bad_port")
        } + [
            HeaderCase("the other address", "PROXY TCP4 1.2.3.4 1.2.3 1 2\r\n", "proxy_protocol.bad_address"),
            HeaderCase("the other port", "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", "proxy_protocol.bad_port"),
        ]

    private static let binaries: [HeaderCase] = [
        HeaderCase("IPv4", binary(0x21, 0x11, ipv4Block), "192.0.2.1 56324"),
        HeaderCase("IPv4 and what follows", binary(0x21, 0x11, ipv4Block) + [1, 2], "192.0.2.1 56324 rest=2"),
        HeaderCase("IPv6", binary(0x21, 0x21, ipv6Block), "2001:db8:0:0:0:0:0:1 80"),
        HeaderCase("datagrams", binary(0x21, 0x12, ipv4Block), "unknown"),
        HeaderCase("a Unix socket", binary(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)), "unknown"),
        HeaderCase("no family", binary(0x21, 0x00, []), "unknown"),
        HeaderCase("no family with something", binary(0x21, 0x00, [1, 2, 3]), "unknown"),
        HeaderCase("the proxy's own", binary(0x20, 0x00, []), "local"),
        HeaderCase("the proxy's own with addresses", binary(0x20, 0x11, ipv4Block), "local"),
        HeaderCase("the proxy's own of any family", binary(0x20, 0xFF, [1, 2, 3]), "local"),
        HeaderCase("extensions", binary(0x21, 0x11, ipv4Block + [1, 0, 2, 0x68, 0x32, 4, 0, 0]), "192.0.2.1 56324"),
        HeaderCase(
            "the longest", binary(0x21, 0x11, ipv4Block + [4, 0x0F, 0xF1] + [UInt8](repeating: 0, count: 4081)),
            "192.0.2.1 56324"),
        HeaderCase(
            "one byte more", binary(0x21, 0x11, ipv4Block + [4, 0x0F, 0xF2] + [UInt8](repeating: 0, count: 4082)),
            "proxy_protocol.bad_length"),
        HeaderCase("a checksum", summed(), "192.0.2.1 56324"),
        HeaderCase("a checksum among others", summed(before: [1, 0, 1, 9], after: [4, 0, 1, 0]), "192.0.2.1 56324"),
        HeaderCase("a wrong checksum", summed(1), "proxy_protocol.bad_checksum"),
        HeaderCase("a checksum twice", summed(after: [3, 0, 4, 0, 0, 0, 0]), "proxy_protocol.bad_extension"),
        HeaderCase("a short checksum", binary(0x21, 0x11, ipv4Block + [3, 0, 1, 0]), "proxy_protocol.bad_extension"),
        HeaderCase("half an extension", binary(0x21, 0x11, ipv4Block + [1, 0]), "proxy_protocol.bad_extension"),
        HeaderCase(
            "too long an extension", binary(0x21, 0x11, ipv4Block + [1, 0, 2, 9]), "proxy_protocol.bad_extension"),
        HeaderCase("another signature", ProxyHeader.signature.dropLast() + [0x0D], "proxy_protocol.bad_signature"),
        HeaderCase("an empty line", "\r\n\r\nGET / HTTP/1.1\r\n", "proxy_protocol.bad_signature"),
        HeaderCase("version 1", binary(0x11, 0x11, ipv4Block), "proxy_protocol.bad_version"),
        HeaderCase("version 3", binary(0x31, 0x11, ipv4Block), "proxy_protocol.bad_version"),
        HeaderCase("another command", binary(0x22, 0x11, ipv4Block), "proxy_protocol.bad_command"),
        HeaderCase("another family", binary(0x21, 0x41, ipv4Block), "proxy_protocol.bad_family"),
        HeaderCase("another transport", binary(0x21, 0x13, ipv4Block), "proxy_protocol.bad_family"),
        HeaderCase("a family without transport", binary(0x21, 0x10, ipv4Block), "proxy_protocol.bad_family"),
        HeaderCase("a transport without family", binary(0x21, 0x01, ipv4Block), "proxy_protocol.bad_family"),
        HeaderCase("too short for IPv4", binary(0x21, 0x11, ipv4Block, length: 11), "proxy_protocol.bad_length"),
        HeaderCase("too short for IPv6", binary(0x21, 0x21, ipv4Block), "proxy_protocol.bad_length"),
        HeaderCase("too short for a Unix socket", binary(0x21, 0x31, ipv6Block), "proxy_protocol.bad_length"),
        HeaderCase("too long", binary(0x21, 0x11, ipv4Block, length: 4097), "proxy_protocol.bad_length"),
        HeaderCase("far too long", binary(0x20, 0x00, [], length: 65_535), "proxy_protocol.bad_length"),
        HeaderCase("a signature", ProxyHeader.signature, "incomplete"),
        HeaderCase("half an address", binary(0x21, 0x11, [192, 0], length: 12), "incomplete"),
    ]

    @Test(arguments: lines + addresses + binaries)
    private func `is read, however it arrives`(_ header: HeaderCase) {
        let whole = ProxyHeader.parse(header.bytes.span)
        #expect(describe(whole, of: header.bytes.count) == header.expected)
        // More bytes do not change a final outcome.
        var decided: ProxyHeader.Outcome?
        for count in 0...header.bytes.count {
            let outcome = ProxyHeader.parse(header.bytes.span.extracting(0..<count))
            if let decided {
                #expect(outcome == decided, "after \(count) bytes")
            } else if outcome != .needMore {
                decided = outcome
                if case .complete(let used, _) = outcome { #expect(used == count) }
            }
        }
        #expect(decided ?? .needMore == whole)
    }

    @Test func `never asks for more than its longest form`() {
        for start in [Array("PROXY UNKNOWN".utf8), binary(0x21, 0x11, [], length: 4096)] {
            let bytes = start + [UInt8](repeating: 0x20, count: ProxyHeader.longest - start.count)
            let outcome = ProxyHeader.parse(bytes.span)
            #expect(outcome != .needMore)
        }
    }

    @Test func `has the checksum that is known of digits`() {
        let digits = Array("123456789".utf8)
        let sum = ProxyHeader.crc32c(digits.span, zeroing: digits.count)
        #expect(sum == 0xE306_9283)
    }

    private static let v4 = ProxyHeader.Address(ipv4: [192, 0, 2, 1], port: 56_324)
    private static let other = ProxyHeader.Address(ipv4: [198, 51, 100, 7], port: 443)
    private static let v6 = ProxyHeader.Address(bytes: Array(ipv6Block.prefix(16)), port: 80)

    @Test(arguments: [
        (v4, other, 28), (v6, v6, 52), (v4, v6, 52), (v6, v4, 52),
    ])
    func `is written as it is read`(_ client: ProxyHeader.Address, _ server: ProxyHeader.Address, _ count: Int) {
        var buffer = ByteBuffer()
        ProxyHeader.write(client: client, server: server, into: &buffer)
        let bytes = unsafe Array(buffer.bytes)
        let outcome = ProxyHeader.parse(bytes.span)
        #expect(outcome == .complete(count: count, peer: .address(client)))
        if count == 28 { #expect(bytes == binary(0x21, 0x11, ipv4Block)) }
    }

    private static let ends: [(ProxyHeader.Address?, ProxyHeader.Address?)] = [
        (nil, v4), (v4, nil), (ProxyHeader.Address(bytes: [1], port: 1), v4),
    ]

    @Test(arguments: ends)
    func `says nothing of an end without an address`(_ client: ProxyHeader.Address?, _ server: ProxyHeader.Address?) {
        var buffer = ByteBuffer()
        ProxyHeader.write(client: client, server: server, into: &buffer)
        let bytes = unsafe Array(buffer.bytes)
        #expect(bytes == binary(0x20, 0x00, []))
    }
}
